package k6http

import (
	"crypto/md5" //nolint:gosec // what most servers ask for
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strings"
)

// challenge is what a server demands in WWW-Authenticate: Digest (RFC 7616).
type challenge struct {
	realm, nonce, opaque, algorithm string
	qop                             []string
}

// answer returns the leg that meets the challenge of a response. A response
// without one that can be met is the outcome.
func (c *course) answer(at leg, res *http.Response) (next leg, follow bool, err error) {
	user := c.request.to.url.User
	if user == nil {
		return leg{}, false, nil
	}
	for _, header := range res.Header.Values("Www-Authenticate") {
		asked, ok := parseChallenge(header)
		if !ok {
			continue
		}
		password, _ := user.Password()
		value, err := asked.authorization(at, user.Username(), password, rand.Text())
		if err != nil {
			return leg{}, false, fmt.Errorf("answer digest challenge: %w", err)
		}
		next = at
		next.header = at.header.Clone()
		next.header.Set("Authorization", value)
		return next, true, nil
	}
	return leg{}, false, nil
}

// parseChallenge reads the header; other schemes are not ok.
func parseChallenge(header string) (challenge, bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	if !strings.EqualFold(scheme, "Digest") {
		return challenge{}, false
	}
	var c challenge
	for rest != "" {
		var name, value string
		name, value, rest = nextParameter(rest)
		switch strings.ToLower(name) {
		case "realm":
			c.realm = value
		case "nonce":
			c.nonce = value
		case "opaque":
			c.opaque = value
		case "algorithm":
			c.algorithm = value
		case "qop":
			for q := range strings.SplitSeq(value, ",") {
				c.qop = append(c.qop, strings.ToLower(strings.TrimSpace(q)))
			}
		}
	}
	return c, c.nonce != ""
}

// nextParameter cuts name=value or name="value" from a list.
func nextParameter(list string) (name, value, rest string) {
	name, rest, found := strings.Cut(strings.TrimLeft(list, " ,\t"), "=")
	name = strings.TrimSpace(name)
	if !found {
		return name, "", ""
	}
	rest = strings.TrimLeft(rest, " \t")
	if !strings.HasPrefix(rest, `"`) {
		value, rest, _ = strings.Cut(rest, ",")
		return name, strings.TrimSpace(value), rest
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			b.WriteByte(rest[i])
		case rest[i] == '"':
			return name, b.String(), rest[i+1:]
		default:
			b.WriteByte(rest[i])
		}
	}
	return name, b.String(), ""
}

// authorization computes the header that answers a challenge.
func (c challenge) authorization(at leg, user, password, clientNonce string) (string, error) {
	algorithm := strings.ToUpper(c.algorithm)
	var sum func() hash.Hash
	switch strings.TrimSuffix(algorithm, "-SESS") {
	case "", "MD5":
		sum = md5.New
	case "SHA-256":
		sum = sha256.New
	default:
		return "", fmt.Errorf("the server asks for the algorithm %s: want MD5 or SHA-256", c.algorithm)
	}
	hashed := func(parts ...string) string {
		h := sum()
		h.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(h.Sum(nil))
	}
	uri, count := at.to.url.RequestURI(), "00000001"
	secret := hashed(user, c.realm, password)
	if strings.HasSuffix(algorithm, "-SESS") {
		secret = hashed(secret, c.nonce, clientNonce)
	}
	qop := c.quality()
	what := hashed(at.method, uri)
	if qop == "auth-int" {
		var content []byte
		if at.body != nil {
			content = at.body.wire
		}
		what = hashed(at.method, uri, hashed(string(content)))
	}
	answer := hashed(secret, c.nonce, what)
	if qop != "" {
		answer = hashed(secret, c.nonce, count, clientNonce, qop, what)
	}
	return c.format(user, uri, answer, qop, count, clientNonce), nil
}

// quality picks the quality of protection: none if the server names none.
func (c challenge) quality() string {
	for _, wanted := range [...]string{"auth", "auth-int"} {
		for _, offered := range c.qop {
			if offered == wanted {
				return wanted
			}
		}
	}
	return ""
}

func (c challenge) format(user, uri, answer, qop, count, clientNonce string) string {
	quoted := func(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
	fields := []string{"username=" + quoted(user), "realm=" + quoted(c.realm), "nonce=" + quoted(c.nonce), "uri=" + quoted(uri),
		"response=" + quoted(answer)}
	if c.algorithm != "" {
		fields = append(fields, "algorithm="+c.algorithm)
	}
	if c.opaque != "" {
		fields = append(fields, "opaque="+quoted(c.opaque))
	}
	if qop != "" {
		fields = append(fields, "qop="+qop, "nc="+count, "cnonce="+quoted(clientNonce))
	}
	return "Digest " + strings.Join(fields, ", ")
}

package k6http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// course decides where a request goes next.
type course struct {
	request    *request
	deadline   time.Time
	followed   int  // redirects
	challenged bool // a digest challenge was answered
	judging    int  // hops judged so far
	exhausted  bool // one more redirect was not followed, and nobody had set how many
}

// explain returns why a request failed, if it was its time or its iteration
// that ended.
func (c *course) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errTimeout):
		if !time.Now().Before(c.deadline) {
			return errTimeout
		}
	}
	return err
}

// next returns the leg after the one that was answered, if there is one.
func (c *course) next(at leg, res *http.Response) (next leg, follow bool, err error) {
	if c.request.auth == authDigest && res.StatusCode == http.StatusUnauthorized && !c.challenged {
		c.challenged = true
		return c.answer(at, res)
	}
	location := res.Header.Get("Location")
	if !isRedirect(res.StatusCode) || location == "" {
		return leg{}, false, nil
	}
	if c.followed >= c.request.redirects {
		c.exhausted = !c.request.limited
		return leg{}, false, nil
	}
	c.followed++
	to, err := at.to.url.Parse(location)
	if err != nil {
		return leg{}, false, fmt.Errorf("follow redirect: read the header Location: %w", err)
	}
	return redirect(at, to, location, res.StatusCode), true, nil
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirect returns the leg to where a redirect points. Only 307 and 308 keep
// the method and the body; the others turn all but GET and HEAD into GET.
func redirect(at leg, to *url.URL, location string, status int) leg {
	next := leg{method: at.method, to: newAddress(to), header: at.header.Clone(), body: at.body}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		next.body = nil
		if at.method != http.MethodGet && at.method != http.MethodHead {
			next.method = http.MethodGet
		}
		for name := range next.header {
			if strings.HasPrefix(name, "Content-") {
				delete(next.header, name)
			}
		}
	}
	if at.host != "" && strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") {
		next.host = at.host // a path leads to the same server
	}
	if next.crosses(at) {
		for _, name := range [...]string{"Authorization", "Www-Authenticate", "Cookie", "Cookie2"} {
			delete(next.header, name)
		}
	}
	if user := to.User; user != nil {
		password, _ := user.Password()
		next.header.Set("Authorization", basicAuth(user.Username(), password))
	}
	if referer := refererOf(at.to.url, to); referer != "" && next.header.Get("Referer") == "" {
		next.header.Set("Referer", referer)
	}
	return next
}

// refererOf is what the header Referer says after a redirect: nothing when it
// would leave TLS, and never credentials.
func refererOf(from, to *url.URL) string {
	if from.Scheme == "https" && to.Scheme == "http" {
		return ""
	}
	bare := *from
	bare.User, bare.Fragment = nil, ""
	return bare.String()
}

// verdict is what the response callback says of a hop.
type verdict int8

const (
	notJudged verdict = iota
	asExpected
	unexpected
)

// judge applies the response callback. With digest, the first answer is
// expected to be the challenge.
func (c *course) judge(status int) verdict {
	c.judging++
	switch expected := c.request.expected; {
	case expected == nil:
		return notJudged
	case c.request.auth == authDigest && c.judging == 1:
		if status == http.StatusUnauthorized {
			return asExpected
		}
	case expected.hold(status):
		return asExpected
	}
	return unexpected
}

package script

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/sobek"
)

// cryptoKey is the secret behind a CryptoKey object.
type cryptoKey struct {
	algorithm   string
	hash        string // of HMAC
	secret      []byte
	extractable bool
	usages      []string
}

// keyProperty holds a cryptoKey in its object; scripts have no name for it.
var keyProperty = sobek.NewSymbol("key")

// usagesOf are the operations that keys of an algorithm serve.
func usagesOf(algorithm string) []string {
	if algorithm == "HMAC" {
		return []string{"sign", "verify"}
	}
	return []string{"encrypt", "decrypt", "wrapKey", "unwrapKey"}
}

// keyObject makes the CryptoKey that scripts see.
func (c webCrypto) keyObject(k *cryptoKey) (any, error) {
	if len(k.usages) == 0 {
		return nil, cryptoErrorf("SyntaxError", "a secret key without usages is of no use: want some of %v", usagesOf(k.algorithm))
	}
	for _, u := range k.usages {
		if !slices.Contains(usagesOf(k.algorithm), u) {
			return nil, cryptoErrorf("SyntaxError", "keys of %s have no usage %q: want some of %v", k.algorithm, u, usagesOf(k.algorithm))
		}
	}
	algorithm := map[string]any{"name": k.algorithm, "length": 8 * len(k.secret)}
	if k.hash != "" {
		algorithm["hash"] = map[string]any{"name": k.hash}
	}
	o := c.v.rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = o.DefineDataPropertySymbol(keyProperty, c.v.rt.ToValue(k), sobek.FLAG_FALSE, sobek.FLAG_FALSE, sobek.FLAG_FALSE)
	_ = o.Set("type", "secret")
	_ = o.Set("extractable", k.extractable)
	_ = o.Set("algorithm", algorithm)
	_ = o.Set("usages", k.usages)
	return o, nil
}

// key returns the key of an object, for one use of one algorithm.
func (c webCrypto) key(value sobek.Value, algorithm, usage string) (*cryptoKey, error) {
	var k *cryptoKey
	if o, ok := value.(*sobek.Object); ok {
		if held := o.GetSymbol(keyProperty); held != nil {
			k, _ = held.Export().(*cryptoKey)
		}
	}
	switch {
	case k == nil:
		return nil, cryptoErrorf("TypeError", "want a CryptoKey, got %s", show(value))
	case algorithm != "" && k.algorithm != algorithm:
		return nil, cryptoErrorf("InvalidAccessError", "the key is of %s and not of %s", k.algorithm, algorithm)
	case usage != "" && !slices.Contains(k.usages, usage):
		return nil, cryptoErrorf("InvalidAccessError", "the key does not have the usage %q but %v", usage, k.usages)
	}
	return k, nil
}

func usages(value sobek.Value) []string {
	var all []string
	if list, ok := value.Export().([]any); ok {
		for _, u := range list {
			all = append(all, fmt.Sprint(u))
		}
	}
	return all
}

// newKey starts a key for importKey and generateKey.
func newKey(a algorithm, extractable, uses sobek.Value) (*cryptoKey, error) {
	k := &cryptoKey{algorithm: a.name, extractable: extractable.ToBoolean(), usages: usages(uses)}
	var err error
	switch {
	case a.name == "HMAC":
		k.hash, err = a.hash()
	case !strings.HasPrefix(a.name, "AES-"):
		err = cryptoErrorf("NotSupportedError", "%s has no keys", a.name)
	}
	return k, err
}

// generateKey is generateKey(algorithm, extractable, usages).
func (c webCrypto) generateKey(call sobek.FunctionCall) (any, error) {
	a, err := readAlgorithm(call.Argument(0))
	if err != nil {
		return nil, err
	}
	k, err := newKey(a, call.Argument(1), call.Argument(2))
	if err != nil {
		return nil, err
	}
	bits := a.number("length", 0)
	if a.name == "HMAC" && bits == 0 {
		bits = 8 * webHash(k.hash)().BlockSize()
	}
	if bits <= 0 || bits%8 != 0 || bits > 1<<16 {
		return nil, cryptoErrorf("OperationError", "%s: want a length in bits, of whole bytes, got %d", a.name, bits)
	}
	k.secret = make([]byte, bits/8)
	rand.Read(k.secret) // never fails
	if err := k.check(); err != nil {
		return nil, err
	}
	return c.keyObject(k)
}

// check refuses keys of a wrong length.
func (k *cryptoKey) check() error {
	if k.algorithm == "HMAC" {
		if len(k.secret) == 0 {
			return cryptoErrorf("DataError", "HMAC: want a key that is not empty")
		}
		return nil
	}
	_, err := newAES(k.secret)
	return err
}

// importKey is importKey("raw" | "jwk", data, algorithm, extractable, usages).
func (c webCrypto) importKey(call sobek.FunctionCall) (any, error) {
	a, err := readAlgorithm(call.Argument(2))
	if err != nil {
		return nil, err
	}
	k, err := newKey(a, call.Argument(3), call.Argument(4))
	if err != nil {
		return nil, err
	}
	switch format := call.Argument(0).String(); format {
	case "raw":
		k.secret = slices.Clone(c.v.bytes("importKey", call.Argument(1)))
	case "jwk":
		o, ok := call.Argument(1).(*sobek.Object)
		if !ok || o.Get("kty") == nil || o.Get("kty").String() != "oct" || o.Get("k") == nil {
			return nil, cryptoErrorf("DataError", `want a JSON web key of kty "oct" with a k`)
		}
		if k.secret, err = base64.RawURLEncoding.DecodeString(o.Get("k").String()); err != nil {
			return nil, cryptoErrorf("DataError", "k: %v", err)
		}
	default:
		return nil, cryptoErrorf("NotSupportedError", "keys in the format %q are not supported: want raw or jwk", format)
	}
	if err := k.check(); err != nil {
		return nil, err
	}
	return c.keyObject(k)
}

// exportKey is exportKey("raw" | "jwk", key).
func (c webCrypto) exportKey(call sobek.FunctionCall) (any, error) {
	k, err := c.key(call.Argument(1), "", "")
	if err != nil {
		return nil, err
	}
	if !k.extractable {
		return nil, cryptoErrorf("InvalidAccessError", "the key was made as not extractable")
	}
	switch format := call.Argument(0).String(); format {
	case "raw":
		return c.v.rt.NewArrayBuffer(slices.Clone(k.secret)), nil
	case "jwk":
		return map[string]any{"kty": "oct", "k": base64.RawURLEncoding.EncodeToString(k.secret), "alg": k.jwkName(),
			"ext": true, "key_ops": k.usages}, nil
	default:
		return nil, cryptoErrorf("NotSupportedError", "keys in the format %q are not supported: want raw or jwk", format)
	}
}

// jwkName is the name of the algorithm in a JSON web key: HS256, A128GCM.
func (k *cryptoKey) jwkName() string {
	if k.algorithm == "HMAC" {
		return "HS" + strings.TrimPrefix(k.hash, "SHA-")
	}
	return fmt.Sprintf("A%d%s", 8*len(k.secret), strings.TrimPrefix(k.algorithm, "AES-"))
}

func (c webCrypto) mac(call sobek.FunctionCall, usage string, data sobek.Value) ([]byte, error) {
	a, err := readAlgorithm(call.Argument(0))
	if err != nil {
		return nil, err
	}
	if a.name != "HMAC" {
		return nil, cryptoErrorf("NotSupportedError", "%s does not sign: want HMAC", a.name)
	}
	k, err := c.key(call.Argument(1), a.name, usage)
	if err != nil {
		return nil, err
	}
	h := hmac.New(webHash(k.hash), k.secret)
	h.Write(c.v.bytes(usage, data))
	return h.Sum(nil), nil
}

// sign is sign(algorithm, key, data).
func (c webCrypto) sign(call sobek.FunctionCall) (any, error) {
	sum, err := c.mac(call, "sign", call.Argument(2))
	if err != nil {
		return nil, err
	}
	return c.v.rt.NewArrayBuffer(sum), nil
}

// verify is verify(algorithm, key, signature, data).
func (c webCrypto) verify(call sobek.FunctionCall) (any, error) {
	sum, err := c.mac(call, "verify", call.Argument(3))
	if err != nil {
		return nil, err
	}
	return subtle.ConstantTimeCompare(sum, c.v.bytes("verify", call.Argument(2))) == 1, nil
}

// encrypt is encrypt(algorithm, key, data).
func (c webCrypto) encrypt(call sobek.FunctionCall) (any, error) { return c.crypt(call, "encrypt") }

// decrypt is decrypt(algorithm, key, data).
func (c webCrypto) decrypt(call sobek.FunctionCall) (any, error) { return c.crypt(call, "decrypt") }

func (c webCrypto) crypt(call sobek.FunctionCall, usage string) (any, error) {
	a, err := readAlgorithm(call.Argument(0))
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(a.name, "AES-") {
		return nil, cryptoErrorf("NotSupportedError", "%s does not encrypt", a.name)
	}
	k, err := c.key(call.Argument(1), a.name, usage)
	if err != nil {
		return nil, err
	}
	given := func(name string) []byte {
		if v := a.get(name); v != nil {
			return c.v.bytes(a.name+": "+name, v)
		}
		return nil
	}
	data := c.v.bytes(usage, call.Argument(2))
	var out []byte
	switch {
	case a.name == "AES-CTR":
		out, err = cryptCTR(k.secret, given("counter"), a.number("length", 0), data)
	case a.name == "AES-CBC" && usage == "encrypt":
		out, err = encryptCBC(k.secret, given("iv"), data)
	case a.name == "AES-CBC":
		out, err = decryptCBC(k.secret, given("iv"), data)
	default:
		out, err = cryptGCM(usage, k.secret, given("iv"), a.number("tagLength", 128), data, given("additionalData"))
	}
	if err != nil {
		return nil, err
	}
	return c.v.rt.NewArrayBuffer(out), nil
}

func cryptGCM(usage string, key, iv []byte, tagBits int, data, additional []byte) ([]byte, error) {
	gcm, err := newGCM(key, len(iv), tagBits)
	if err != nil {
		return nil, err
	}
	if usage == "encrypt" {
		return gcm.Seal(nil, iv, data, additional), nil
	}
	out, err := gcm.Open(nil, iv, data, additional)
	if err != nil {
		return nil, cryptoErrorf("OperationError", "the data cannot be decrypted with this key, iv and additional data")
	}
	return out, nil
}

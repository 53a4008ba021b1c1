package script

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/grafana/sobek"
)

// cryptoError is an error of WebCrypto with the name that its specification
// gives it: OperationError, NotSupportedError …
type cryptoError struct{ name, message string }

func (e *cryptoError) Error() string { return e.name + ": " + e.message }

func cryptoErrorf(name, format string, args ...any) *cryptoError {
	return &cryptoError{name, fmt.Sprintf(format, args...)}
}

// webCrypto is the global crypto of one runtime.
type webCrypto struct{ v *vm }

// cryptoObject makes the global crypto.
func (v *vm) cryptoObject() *sobek.Object {
	c := webCrypto{v}
	subtle := v.rt.NewObject()
	for name, op := range map[string]func(sobek.FunctionCall) (any, error){
		"digest": c.digest, "importKey": c.importKey, "exportKey": c.exportKey, "generateKey": c.generateKey,
		"sign": c.sign, "verify": c.verify, "encrypt": c.encrypt, "decrypt": c.decrypt,
	} {
		// setting plain properties of fresh objects cannot fail
		_ = subtle.Set(name, c.promised(op))
	}
	o := v.rt.NewObject()
	_ = o.Set("subtle", subtle)
	_ = o.Set("getRandomValues", native(c.getRandomValues))
	_ = o.Set("randomUUID", native(func(sobek.FunctionCall) sobek.Value { return v.rt.ToValue(newUUID()) }))
	return o
}

// promised makes a function that returns a promise of what op returns. The
// work itself is done at once.
func (c webCrypto) promised(op func(sobek.FunctionCall) (any, error)) native {
	return func(call sobek.FunctionCall) sobek.Value {
		promise, resolve, reject := c.v.rt.NewPromise()
		var result any
		err := c.v.rt.Try(func() {
			var failure error
			if result, failure = op(call); failure != nil {
				panic(c.v.errorObject(failure))
			}
		})
		if err != nil {
			if err := reject(err.Value()); err != nil {
				panic(err)
			}
		} else if err := resolve(result); err != nil {
			panic(err)
		}
		return c.v.rt.ToValue(promise)
	}
}

// errorObject makes the Error of a cryptoError, with its name.
func (v *vm) errorObject(err error) sobek.Value {
	var failure *cryptoError
	if !errors.As(err, &failure) {
		return v.rt.NewGoError(err)
	}
	o, newErr := v.rt.New(v.rt.Get("Error"), v.rt.ToValue(failure.message))
	if newErr != nil {
		panic(newErr)
	}
	// setting a plain property of a fresh object cannot fail
	_ = o.Set("name", failure.name)
	return o
}

// maxRandomBytes is what one call of getRandomValues may ask for.
const maxRandomBytes = 65536

func (c webCrypto) getRandomValues(call sobek.FunctionCall) sobek.Value {
	array, ok := call.Argument(0).(*sobek.Object)
	if !ok || array.Get("BYTES_PER_ELEMENT") == nil {
		c.v.throwType("crypto.getRandomValues: want a typed array of integers, got %s", show(call.Argument(0)))
	}
	if name := array.Get("constructor").ToObject(c.v.rt).Get("name").String(); name == "Float32Array" || name == "Float64Array" {
		c.v.throwType("crypto.getRandomValues: want a typed array of integers, got a %s", name)
	}
	b := c.v.bytes("crypto.getRandomValues", array)
	if len(b) > maxRandomBytes {
		panic(c.v.errorObject(cryptoErrorf("QuotaExceededError", "want at most %d bytes at once, got %d", maxRandomBytes, len(b))))
	}
	rand.Read(b) // never fails
	return array
}

// newUUID returns a random UUID, version 4.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// algorithm is a parsed algorithm argument: a name, or an object with one.
type algorithm struct {
	name string
	o    *sobek.Object // nil when only a name was given
}

// algorithms are the names that are known, in their canonical form.
var algorithms = [...]string{"SHA-1", "SHA-256", "SHA-384", "SHA-512", "HMAC", "AES-CBC", "AES-CTR", "AES-GCM"}

func readAlgorithm(value sobek.Value) (algorithm, error) {
	a := algorithm{}
	text := value
	if o, ok := value.(*sobek.Object); ok {
		a.o = o
		if text = o.Get("name"); text == nil {
			return a, cryptoErrorf("SyntaxError", "algorithm: want a name")
		}
	}
	var ok bool
	if a.name, ok = canonical(text.String()); !ok {
		return a, cryptoErrorf("NotSupportedError", "algorithm %s is not supported: there are %v", text, algorithms)
	}
	return a, nil
}

// get returns a property of the algorithm, or nil.
func (a algorithm) get(name string) sobek.Value {
	if a.o == nil {
		return nil
	}
	v := a.o.Get(name)
	if v == nil || sobek.IsUndefined(v) || sobek.IsNull(v) {
		return nil
	}
	return v
}

// number returns a whole number, or otherwise when it is not given.
func (a algorithm) number(name string, otherwise int) int {
	if v := a.get(name); v != nil {
		return int(v.ToInteger())
	}
	return otherwise
}

// hash returns the name of the hash within the algorithm.
func (a algorithm) hash() (string, error) {
	v := a.get("hash")
	if v == nil {
		return "", cryptoErrorf("SyntaxError", "%s: want a hash, such as SHA-256", a.name)
	}
	h, err := readAlgorithm(v)
	if err != nil {
		return "", err
	}
	if webHash(h.name) == nil {
		return "", cryptoErrorf("NotSupportedError", "%s is no hash", h.name)
	}
	return h.name, nil
}

func (c webCrypto) digest(call sobek.FunctionCall) (any, error) {
	a, err := readAlgorithm(call.Argument(0))
	if err != nil {
		return nil, err
	}
	newHash := webHash(a.name)
	if newHash == nil {
		return nil, cryptoErrorf("NotSupportedError", "%s is no hash", a.name)
	}
	h := newHash()
	h.Write(c.v.bytes("digest", call.Argument(1)))
	return c.v.rt.NewArrayBuffer(h.Sum(nil)), nil
}

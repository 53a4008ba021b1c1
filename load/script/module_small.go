package script

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"

	"github.com/grafana/sobek"
	"golang.org/x/crypto/md4"       //nolint:staticcheck // k6 has it
	"golang.org/x/crypto/ripemd160" //nolint:staticcheck // k6 has it
)

func timersModule(v *vm) Exports {
	return Exports{Named: map[string]any{
		"setTimeout": native(v.setTimeout), "setInterval": native(v.setInterval),
		"clearTimeout": native(v.clearTimer), "clearInterval": native(v.clearTimer),
	}}
}

// base64Of returns the alphabet of that name; the standard one for any other.
func base64Of(name string) *base64.Encoding {
	switch name {
	case "rawstd":
		return base64.RawStdEncoding
	case "url":
		return base64.URLEncoding
	case "rawurl":
		return base64.RawURLEncoding
	}
	return base64.StdEncoding
}

func encodingModule(v *vm) Exports {
	return Exports{Named: map[string]any{
		"b64encode": native(func(call sobek.FunctionCall) sobek.Value {
			return v.rt.ToValue(base64Of(call.Argument(1).String()).EncodeToString(v.bytes("b64encode", call.Argument(0))))
		}),
		"b64decode": native(func(call sobek.FunctionCall) sobek.Value {
			b, err := base64Of(call.Argument(1).String()).DecodeString(call.Argument(0).String())
			if err != nil {
				v.throw("b64decode: %w", err)
			}
			if call.Argument(2).String() == "s" {
				return v.rt.ToValue(string(b))
			}
			return v.rt.ToValue(v.rt.NewArrayBuffer(b))
		}),
	}}
}

// hashes are the hash functions of k6/crypto. Some are long broken; scripts
// need them to speak to old servers.
func hashes() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{
		"md4": md4.New, "ripemd160": ripemd160.New, "md5": md5.New, "sha1": sha1.New, "sha256": sha256.New, "sha384": sha512.New384,
		"sha512": sha512.New, "sha512_224": sha512.New512_224, "sha512_256": sha512.New512_256,
	}
}

func cryptoModule(v *vm) Exports {
	named := map[string]any{}
	all := hashes()
	for name, newHash := range all {
		named[name] = native(func(call sobek.FunctionCall) sobek.Value {
			h := newHash()
			h.Write(v.bytes(name, call.Argument(0)))
			return v.digest(name, h.Sum(nil), call.Argument(1))
		})
	}
	algorithm := func(where string, call sobek.FunctionCall) func() hash.Hash {
		name := call.Argument(0).String()
		newHash := all[name]
		if newHash == nil {
			v.throw("%s: unknown hash function %q", where, name)
		}
		return newHash
	}
	named["createHash"] = native(func(call sobek.FunctionCall) sobek.Value {
		return v.hasher("createHash", algorithm("createHash", call)())
	})
	named["createHMAC"] = native(func(call sobek.FunctionCall) sobek.Value {
		return v.hasher("createHMAC", hmac.New(algorithm("createHMAC", call), v.bytes("createHMAC", call.Argument(1))))
	})
	named["hmac"] = native(func(call sobek.FunctionCall) sobek.Value {
		h := hmac.New(algorithm("hmac", call), v.bytes("hmac", call.Argument(1)))
		h.Write(v.bytes("hmac", call.Argument(2)))
		return v.digest("hmac", h.Sum(nil), call.Argument(3))
	})
	named["hexEncode"] = native(func(call sobek.FunctionCall) sobek.Value {
		return v.rt.ToValue(hex.EncodeToString(v.bytes("hexEncode", call.Argument(0))))
	})
	named["randomBytes"] = native(func(call sobek.FunctionCall) sobek.Value {
		n := call.Argument(0).ToInteger()
		if n < 1 || n > 1<<26 {
			v.throw("randomBytes: want a size from 1 to %d, got %d", 1<<26, n)
		}
		b := make([]byte, n)
		rand.Read(b) // never fails
		return v.rt.ToValue(v.rt.NewArrayBuffer(b))
	})
	return Exports{Named: named}
}

// hasher is the object that createHash and createHMAC return.
func (v *vm) hasher(where string, h hash.Hash) sobek.Value {
	o := v.rt.NewObject()
	// setting plain properties of a fresh object cannot fail
	_ = o.Set("update", native(func(call sobek.FunctionCall) sobek.Value {
		h.Write(v.bytes(where+".update", call.Argument(0)))
		return sobek.Undefined()
	}))
	_ = o.Set("digest", native(func(call sobek.FunctionCall) sobek.Value {
		return v.digest(where, h.Sum(nil), call.Argument(0))
	}))
	return o
}

func (v *vm) digest(where string, sum []byte, encoding sobek.Value) sobek.Value {
	switch encoding.String() {
	case "hex":
		return v.rt.ToValue(hex.EncodeToString(sum))
	case "base64":
		return v.rt.ToValue(base64.StdEncoding.EncodeToString(sum))
	case "base64url":
		return v.rt.ToValue(base64.URLEncoding.EncodeToString(sum))
	case "base64rawurl":
		return v.rt.ToValue(base64.RawURLEncoding.EncodeToString(sum))
	case "binary":
		return v.rt.ToValue(v.rt.NewArrayBuffer(sum))
	}
	v.throw("%s: want hex, base64, base64url, base64rawurl or binary as output encoding, got %s", where, show(encoding))
	return nil
}

package script

import (
	"bytes"
	"testing"
)

func TestWebCrypto(t *testing.T) {
	passes(t, 18, script(`
		import { check } from 'k6';
		import { hexEncode } from 'k6/crypto';
		const bytes = (hex) => new Uint8Array(hex.match(/../g).map((h) => parseInt(h, 16)));
		const text = (s) => new TextEncoder().encode(s);
		const s = crypto.subtle;
		const rejects = async (p) => { try { await p; return ''; } catch (e) { return e.name; } };
		export default async function () {
			const digest = hexEncode(await s.digest({ name: 'sha-256' }, text('abc')));
			const hmac = await s.importKey('raw', text('key'), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify']);
			const mac = await s.sign('HMAC', hmac, text('The quick brown fox jumps over the lazy dog'));
			const jwk = await s.exportKey('jwk', hmac);
			const aes = await s.importKey('raw', bytes('2b7e151628aed2a6abf7158809cf4f3c'), 'AES-CBC', false, ['encrypt', 'decrypt']);
			const iv = bytes('000102030405060708090a0b0c0d0e0f');
			const cbc = await s.encrypt({ name: 'AES-CBC', iv }, aes, bytes('6bc1bee22e409f96e93d7e117393172a'));
			const ctrKey = await s.importKey('raw', bytes('2b7e151628aed2a6abf7158809cf4f3c'), 'AES-CTR', true, ['encrypt', 'decrypt']);
			const counter = bytes('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff');
			const ctr = await s.encrypt({ name: 'AES-CTR', counter, length: 64 }, ctrKey, bytes('6bc1bee22e409f96e93d7e117393172a'));
			const gcmKey = await s.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt', 'decrypt']);
			const gcm = { name: 'AES-GCM', iv: crypto.getRandomValues(new Uint8Array(12)), additionalData: text('aad') };
			const sealed = await s.encrypt(gcm, gcmKey, text('hello'));
			const opened = new TextDecoder().decode(await s.decrypt(gcm, gcmKey, sealed));
			const tampered = new Uint8Array(sealed); tampered[0] ^= 1;
			const tamperedError = await rejects(s.decrypt(gcm, gcmKey, tampered));
			const plain = await s.decrypt({ name: 'AES-CBC', iv }, aes, cbc);
			const noUse = await rejects(s.sign('HMAC', aes, text('x')));
			const secret = await rejects(s.exportKey('raw', aes));
			const unknown = await rejects(s.generateKey({ name: 'RSA-PSS' }, true, ['sign']));
			const useless = await rejects(s.generateKey({ name: 'AES-GCM', length: 128 }, true, []));
			const odd = await rejects(s.importKey('raw', text('short'), 'AES-CBC', true, ['encrypt']));
			const verified = await s.verify('HMAC', hmac, mac, text('The quick brown fox jumps over the lazy dog'));
			const forged = await s.verify('HMAC', hmac, mac, text('x'));
			const again = await s.importKey('jwk', jwk, { name: 'HMAC', hash: 'SHA-256' }, true, ['verify']);
			const viaJWK = await s.verify('HMAC', again, mac, text('The quick brown fox jumps over the lazy dog'));
			const generated = await s.generateKey({ name: 'HMAC', hash: 'SHA-512' }, true, ['sign']);
			let quota = ''; try { crypto.getRandomValues(new Uint8Array(65537)); } catch (e) { quota = e.name; }
			let floats = ''; try { crypto.getRandomValues(new Float64Array(1)); } catch (e) { floats = e.name; }
			check(null, {
				digest: () => digest === 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
				mac: () => hexEncode(mac) === 'f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8',
				jwk: () => jwk.kty === 'oct' && jwk.k === 'a2V5' && jwk.alg === 'HS256',
				cbc: () => hexEncode(cbc).startsWith('7649abac8119b246cee98e9b12e9197d') && cbc.byteLength === 32,
				plain: () => hexEncode(plain) === '6bc1bee22e409f96e93d7e117393172a',
				ctr: () => hexEncode(ctr) === '874d6191b620e3261bef6864990db6ce',
				opened: () => opened === 'hello', tampered: () => tamperedError === 'OperationError',
				'wrong use': () => noUse === 'InvalidAccessError', secret: () => secret === 'InvalidAccessError',
				unknown: () => unknown === 'NotSupportedError', useless: () => useless === 'SyntaxError', odd: () => odd === 'OperationError',
				verify: () => verified === true && forged === false, viaJWK: () => viaJWK === true,
				key: () => generated.type === 'secret' && generated.algorithm.hash.name === 'SHA-512' && generated.algorithm.length === 1024 && generated.usages[0] === 'sign',
				uuid: () => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()) && crypto.randomUUID() !== crypto.randomUUID(),
				limits: () => quota === 'QuotaExceededError' && floats === 'TypeError',
			});
		}`))
}

func TestCounterWrapsWithinItsBits(t *testing.T) {
	key := []byte("0123456789abcdef")
	counter := append(bytes.Repeat([]byte{7}, 15), 0xff) // the last of 256 values
	data := make([]byte, 40)
	got, err := cryptCTR(key, counter, 8, data)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := cryptCTR(key, counter, 128, data[:16])
	second, _ := cryptCTR(key, append(bytes.Repeat([]byte{7}, 15), 0), 128, data[:24])
	if want := append(first, second...); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if _, err := cryptCTR(key, counter, 1, data); err == nil {
		t.Error("three blocks under a counter of one bit: want an error")
	}
}

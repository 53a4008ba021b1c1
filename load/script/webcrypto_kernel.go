package script

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"math/big"
	"slices"
	"strings"
)

// canonical returns the canonical spelling of an algorithm's name.
func canonical(name string) (string, bool) {
	i := slices.IndexFunc(algorithms[:], func(known string) bool { return strings.EqualFold(known, name) })
	if i < 0 {
		return "", false
	}
	return algorithms[i], true
}

// webHash returns the hash of a canonical name; nil for what is no hash.
func webHash(name string) func() hash.Hash {
	switch name {
	case "SHA-1":
		return sha1.New
	case "SHA-256":
		return sha256.New
	case "SHA-384":
		return sha512.New384
	case "SHA-512":
		return sha512.New
	}
	return nil
}

// encryptCBC pads as PKCS #7 says and encrypts.
func encryptCBC(key, iv, plain []byte) ([]byte, error) {
	block, err := cbcBlock(key, iv)
	if err != nil {
		return nil, err
	}
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	out := slices.Concat(plain, slices.Repeat([]byte{byte(pad)}, pad))
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(out, out)
	return out, nil
}

func decryptCBC(key, iv, secret []byte) ([]byte, error) {
	block, err := cbcBlock(key, iv)
	if err != nil {
		return nil, err
	}
	if len(secret) == 0 || len(secret)%aes.BlockSize != 0 {
		return nil, cryptoErrorf("OperationError", "want data of whole blocks of %d bytes, got %d bytes", aes.BlockSize, len(secret))
	}
	out := make([]byte, len(secret))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, secret)
	pad := int(out[len(out)-1])
	if pad < 1 || pad > aes.BlockSize || slices.ContainsFunc(out[len(out)-pad:], func(b byte) bool { return int(b) != pad }) {
		return nil, cryptoErrorf("OperationError", "the data cannot be decrypted with this key and iv")
	}
	return out[:len(out)-pad], nil
}

func cbcBlock(key, iv []byte) (cipher.Block, error) {
	if len(iv) != aes.BlockSize {
		return nil, cryptoErrorf("OperationError", "AES-CBC: want an iv of %d bytes, got %d", aes.BlockSize, len(iv))
	}
	return newAES(key)
}

func newAES(key []byte) (cipher.Block, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, cryptoErrorf("OperationError", "want a key of 128, 192 or 256 bits, got %d", 8*len(key))
	}
	return block, nil
}

// cryptCTR encrypts and decrypts. Of the counter block only the last bits
// count, and wrap around.
func cryptCTR(key, counter []byte, bits int, data []byte) ([]byte, error) {
	block, err := newAES(key)
	if err != nil {
		return nil, err
	}
	if len(counter) != aes.BlockSize || bits < 1 || bits > 8*aes.BlockSize {
		return nil, cryptoErrorf("OperationError", "AES-CTR: want a counter of %d bytes and a length of 1 to 128 bits, got %d bytes and %d bits", aes.BlockSize, len(counter), bits)
	}
	size := new(big.Int).Lsh(big.NewInt(1), uint(bits)) // blocks until the counter repeats
	start := new(big.Int).SetBytes(counter)
	nonce := new(big.Int).Lsh(new(big.Int).Rsh(start, uint(bits)), uint(bits)) // the counter at zero
	left := new(big.Int).Sub(size, new(big.Int).Sub(start, nonce))
	blocks := big.NewInt(int64((len(data) + aes.BlockSize - 1) / aes.BlockSize))
	if blocks.Cmp(size) > 0 {
		return nil, cryptoErrorf("OperationError", "AES-CTR: a counter of %d bits is too short for %d bytes", bits, len(data))
	}
	first := len(data)
	if blocks.Cmp(left) > 0 {
		first = int(left.Int64()) * aes.BlockSize
	}
	out := make([]byte, len(data))
	cipher.NewCTR(block, counter).XORKeyStream(out[:first], data[:first])
	if first < len(data) {
		cipher.NewCTR(block, nonce.FillBytes(make([]byte, aes.BlockSize))).XORKeyStream(out[first:], data[first:])
	}
	return out, nil
}

// newGCM returns the cipher for an iv and a length of the tag in bits.
func newGCM(key []byte, ivLength, tagBits int) (cipher.AEAD, error) {
	block, err := newAES(key)
	if err != nil {
		return nil, err
	}
	var gcm cipher.AEAD
	switch {
	case ivLength == 0:
		return nil, cryptoErrorf("OperationError", "AES-GCM: want an iv")
	case tagBits == 128:
		gcm, err = cipher.NewGCMWithNonceSize(block, ivLength)
	case ivLength == 12 && tagBits%8 == 0:
		gcm, err = cipher.NewGCMWithTagSize(block, tagBits/8)
	default:
		return nil, cryptoErrorf("NotSupportedError", "AES-GCM: want a tagLength of 128, or an iv of 12 bytes with a tagLength from 96 to 128, got %d bytes and %d bits", ivLength, tagBits)
	}
	if err != nil {
		return nil, cryptoErrorf("OperationError", "AES-GCM: want a tagLength from 96 to 128, got %d", tagBits)
	}
	return gcm, nil
}

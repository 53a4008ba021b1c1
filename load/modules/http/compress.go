package k6http

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// encodings of content, as the header Content-Encoding names them.
const (
	encodingGzip    = "gzip"
	encodingDeflate = "deflate"
	encodingBrotli  = "br"
	encodingZstd    = "zstd"
)

func splitEncodings(list string) []string {
	var all []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// compress applies encodings, separated by commas, in their order.
func compress(content []byte, list string) ([]byte, error) {
	for _, name := range splitEncodings(list) {
		var b bytes.Buffer
		w, err := compressor(name, &b)
		if err == nil {
			_, err = w.Write(content)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("compress with %s: %w", name, err)
		}
		content = b.Bytes()
	}
	return content, nil
}

func compressor(name string, w io.Writer) (io.WriteCloser, error) {
	switch name {
	case encodingGzip:
		return gzip.NewWriter(w), nil
	case encodingDeflate:
		return zlib.NewWriter(w), nil
	case encodingBrotli:
		return brotli.NewWriter(w), nil
	case encodingZstd:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return nil, oneOf("encoding", name, encodingGzip, encodingDeflate, encodingBrotli, encodingZstd)
}

// decompressError is a body that is not in the encoding that its header names.
type decompressError struct {
	encoding string
	err      error
}

func (e *decompressError) Error() string { return "decompress " + e.encoding + ": " + e.err.Error() }
func (e *decompressError) Unwrap() error { return e.err }

// decompress undoes the encodings of a Content-Encoding header, the last
// first, up to one that is not known.
func decompress(content []byte, list string) ([]byte, error) {
	names := splitEncodings(list)
	slices.Reverse(names)
	for _, name := range names {
		if name == "identity" {
			continue
		}
		r, known, err := decompressor(name, content)
		if !known {
			return content, nil
		}
		if err == nil {
			content, err = io.ReadAll(r)
			r.Close()
		}
		if err != nil {
			return nil, &decompressError{name, err}
		}
	}
	return content, nil
}

func decompressor(name string, content []byte) (r io.ReadCloser, known bool, err error) {
	in := bytes.NewReader(content)
	switch name {
	case encodingGzip, "x-gzip":
		r, err = gzip.NewReader(in)
	case encodingDeflate:
		if r, err = zlib.NewReader(in); err != nil { // some servers send it bare
			r, err = flate.NewReader(bytes.NewReader(content)), nil
		}
	case encodingBrotli:
		r = io.NopCloser(brotli.NewReader(in))
	case encodingZstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1)); err == nil {
			r = z.IOReadCloser()
		}
	default:
		return nil, false, nil
	}
	return r, true, err
}

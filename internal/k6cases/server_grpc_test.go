package k6cases

import (
	"encoding/binary"
	"io"
	"net/http"
	"time"
)

// The gRPC service of the server, by hand, over cleartext HTTP/2:
//
// service cases.Echo { Say(Msg) Msg; Fail(Msg) Msg; Count(Msg) stream Msg }
// message Msg { string text = 1; int32 n = 2; }

type gmsg struct {
	text string
	n    uint64
}

func grpcRead(r *http.Request) (m gmsg) {
	b, _ := io.ReadAll(r.Body)
	if len(b) < 5 {
		return
	}
	b = b[5:]
	for len(b) > 0 {
		tag, k := binary.Uvarint(b)
		if k <= 0 {
			return
		}
		b = b[k:]
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return
		}
		b = b[k:]
		switch tag {
		case 1<<3 | 2:
			if uint64(len(b)) < v {
				return
			}
			m.text, b = string(b[:v]), b[v:]
		case 2 << 3:
			m.n = v
		default:
			return
		}
	}
	return
}

func (m gmsg) frame() []byte {
	var p []byte
	if m.text != "" {
		p = append(p, 1<<3|2)
		p = binary.AppendUvarint(p, uint64(len(m.text)))
		p = append(p, m.text...)
	}
	if m.n != 0 {
		p = append(p, 2<<3)
		p = binary.AppendUvarint(p, m.n)
	}
	out := []byte{0}
	out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
	return append(out, p...)
}

func grpcHead(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message, X-Tail")
	if v := r.Header.Get("X-Trace"); v != "" {
		w.Header().Set("X-Trace-Back", v)
	}
}

func grpcSay(w http.ResponseWriter, r *http.Request) {
	m := grpcRead(r)
	if m.text == "slow" {
		time.Sleep(1500 * time.Millisecond)
	}
	grpcHead(w, r)
	m.text, m.n = "re:"+m.text, m.n+1
	w.Write(m.frame())
	w.Header().Set("Grpc-Status", "0")
	w.Header().Set("X-Tail", "t1")
}

func grpcFail(w http.ResponseWriter, r *http.Request) {
	grpcRead(r)
	grpcHead(w, r)
	w.WriteHeader(200)
	w.Header().Set("Grpc-Status", "7") // PERMISSION_DENIED
	w.Header().Set("Grpc-Message", "no entry")
}

func grpcCount(w http.ResponseWriter, r *http.Request) {
	m := grpcRead(r)
	grpcHead(w, r)
	for i := uint64(1); i <= m.n; i++ {
		w.Write(gmsg{text: m.text, n: i}.frame())
		w.(http.Flusher).Flush()
	}
	w.Header().Set("Grpc-Status", "0")
}

package k6secrets

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// redacted stands where a secret was.
const redacted = "***SECRET_REDACTED***"

// hidden are the secrets that scripts have been given.
type hidden struct {
	mu       sync.Mutex
	values   []string
	replacer atomic.Pointer[strings.Replacer] // nil while there are none
}

func (h *hidden) add(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if value == "" || slices.Contains(h.values, value) {
		return
	}
	h.values = append(h.values, value)
	// a secret may be part of another: the longest first
	slices.SortFunc(h.values, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, v := range h.values {
		pairs = append(pairs, v, redacted)
	}
	h.replacer.Store(strings.NewReplacer(pairs...))
}

// Redact returns text without the secrets that scripts have been given.
func (s *Sources) Redact(text string) string {
	if r := s.hidden.replacer.Load(); r != nil {
		return r.Replace(text)
	}
	return text
}

// Hide returns a handler that hands records on to next without the secrets
// that scripts have been given by then.
func (s *Sources) Hide(next slog.Handler) slog.Handler { return hiding{next, s} }

type hiding struct {
	next    slog.Handler
	sources *Sources
}

var _ slog.Handler = hiding{}

// Enabled is that of the next handler.
func (h hiding) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle hands a record on without secrets.
func (h hiding) Handle(ctx context.Context, r slog.Record) error {
	if h.sources.hidden.replacer.Load() == nil {
		return h.next.Handle(ctx, r)
	}
	clean := slog.NewRecord(r.Time, r.Level, h.sources.Redact(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.clean(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h hiding) clean(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		var inner []slog.Attr
		for _, member := range v.Group() {
			inner = append(inner, h.clean(member))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(inner...)}
	case slog.KindString:
		return slog.String(a.Key, h.sources.Redact(v.String()))
	case slog.KindAny:
		text := fmt.Sprint(v.Any())
		if cleaned := h.sources.Redact(text); cleaned != text {
			return slog.String(a.Key, cleaned)
		}
	}
	return a
}

// WithAttrs hands attributes on without secrets.
func (h hiding) WithAttrs(attrs []slog.Attr) slog.Handler {
	cleaned := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		cleaned[i] = h.clean(a)
	}
	return hiding{h.next.WithAttrs(cleaned), h.sources}
}

// WithGroup is that of the next handler.
func (h hiding) WithGroup(name string) slog.Handler { return hiding{h.next.WithGroup(name), h.sources} }

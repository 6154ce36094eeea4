// SPDX-License-Identifier: Apache-2.0

package quietlog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/text"
)

// Bounds of a log. Others cause some messages, and choose texts in them, such as URLs.
const (
	// maxPerSecond is the maximum number of lines with the same level and message in a second.
	maxPerSecond = 20
	// maxKinds is the maximum number of different messages in a second. All further ones count as one.
	maxKinds = 200
	// maxText is the maximum length of a message and of a value, in bytes.
	maxText = 2048
)

// Bounded returns a handler that writes a bounded number of lines of bounded length in each second. At the end of a
// second it writes how many lines were suppressed, by message. Control characters in texts are replaced.
func Bounded(h slog.Handler) slog.Handler { return bounded{h, &limits{seen: map[kind]*seen{}, out: h}} }

type bounded struct {
	slog.Handler
	*limits
}

type kind struct {
	level   slog.Level
	message string
}

// seen counts the lines of a kind in the current second.
type seen struct{ written, suppressed int }

type limits struct {
	out slog.Handler // without attributes

	mu      sync.Mutex
	seen    map[kind]*seen
	pending bool // whether the end of the second is scheduled
}

// Handle implements slog.Handler.
func (b bounded) Handle(ctx context.Context, r slog.Record) error {
	message := clean(r.Message)
	if !b.admit(kind{r.Level, message}) {
		return nil
	}
	short := slog.NewRecord(r.Time, r.Level, message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(cleanAttr(a))
		return true
	})
	return b.Handler.Handle(ctx, short)
}

// WithAttrs implements slog.Handler.
func (b bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bounded{b.Handler.WithAttrs(attrs), b.limits}
}

// WithGroup implements slog.Handler.
func (b bounded) WithGroup(name string) slog.Handler {
	return bounded{b.Handler.WithGroup(name), b.limits}
}

// others is the kind of all messages when there are too many different ones.
const others = "other messages"

// admit counts a line and reports whether to write it.
func (l *limits) admit(k kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.seen[k]
	if one == nil && len(l.seen) >= maxKinds {
		k = kind{slog.LevelWarn, others}
		one = l.seen[k]
	}
	if one == nil {
		one = &seen{}
		l.seen[k] = one
	}
	if !l.pending {
		l.pending = true
		time.AfterFunc(time.Second, l.flush)
	}
	if one.written >= maxPerSecond {
		one.suppressed++
		return false
	}
	one.written++
	return true
}

// flush ends a second.
func (l *limits) flush() {
	l.mu.Lock()
	all := l.seen
	l.seen, l.pending = map[kind]*seen{}, false
	l.mu.Unlock()
	for k, one := range all {
		if one.suppressed == 0 {
			continue
		}
		r := slog.NewRecord(time.Now(), k.level, "more lines with the same message were suppressed", 0)
		r.AddAttrs(slog.String("message", k.message), slog.Int("lines", one.suppressed))
		_ = l.out.Handle(context.Background(), r) // nothing is left to report an error to
	}
}

// cleanAttr shortens the texts of an attribute.
func cleanAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, clean(v.String()))
	case slog.KindGroup:
		var all []slog.Attr
		for _, one := range v.Group() {
			all = append(all, cleanAttr(one))
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(all...)}
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, clean(err.Error()))
		}
		if printed := fmt.Sprintf("%+v", v.Any()); len(printed) > maxText {
			return slog.String(a.Key, clean(printed))
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// clean replaces control characters, except line breaks, which handlers quote, and shortens a text.
func clean(s string) string {
	if len(s) <= maxText && isPlain(s) {
		return s
	}
	return text.Short(text.Terminal(s), maxText)
}

func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

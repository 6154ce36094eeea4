// SPDX-License-Identifier: Apache-2.0

package quietlog

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestInfoBecomesDebugAndNothingElseChanges(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelInfo:  "level=WARN msg=warned part=x a=1\n",
		slog.LevelDebug: "level=DEBUG msg=told part=x a=1\nlevel=DEBUG msg=traced part=x a=1\nlevel=WARN msg=warned part=x a=1\n",
	} {
		var out bytes.Buffer
		log := New(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		})), "x").With("a", 1)
		log.Info("told")
		log.Debug("traced")
		log.Warn("warned")
		if got := strings.TrimLeft(out.String(), " "); got != want {
			t.Errorf("at %s:\n%swant\n%s", level, got, want)
		}
	}
}

func TestHeld(t *testing.T) {
	var h Held
	log := slog.New(slog.NewTextHandler(&h, nil))
	log.Warn("first")
	for range maxHeld / 50 {
		log.Warn("and more, of which there are so many that not all of them are kept")
	}
	var out bytes.Buffer
	h.Release(&out)
	if text := out.String(); !strings.Contains(text, "msg=first") || !strings.HasSuffix(text, " more log lines were dropped\n") || len(text) > maxHeld+100 {
		t.Errorf("%d bytes are released:\n%.300s", len(text), text)
	}
	out.Reset()
	if h.Release(&out); out.Len() > 0 {
		t.Errorf("released twice: %q", out.String())
	}
}

func TestABoundedLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(Bounded(slog.NewTextHandler(&out, nil))).With("part", "x")
		for range 1000 {
			log.Warn("refused", "url", strings.Repeat("a", 1<<20))
		}
		log.Error("another", "err", errors.New("\x1b[2J\u202eb"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		text := out.String()
		if n := strings.Count(text, "msg=refused"); n != maxPerSecond {
			t.Errorf("%d lines are written, want %d", n, maxPerSecond)
		}
		if len(text) > (maxPerSecond+2)*(maxText+200) {
			t.Errorf("%d bytes are written", len(text))
		}
		if !strings.Contains(text, "message=refused lines=980") {
			t.Errorf("the suppressed lines are not counted:\n%.300s", text[max(0, len(text)-300):])
		}
		if !strings.Contains(text, "msg=another") || strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, `\x1b`) {
			_, after, _ := strings.Cut(text, "msg=another")
			t.Errorf("the other message: %.200q", after)
		}
		out.Reset()
		log.Warn("refused")
		if out.Len() == 0 {
			t.Error("nothing is written in the next second")
		}
		for i := range 10 * maxKinds {
			log.Warn(strings.Repeat("x", i))
		}
		if n := strings.Count(out.String(), "\n"); n > maxKinds+maxPerSecond {
			t.Errorf("%d lines of different messages in a second", n)
		}
		time.Sleep(2 * time.Second)
	})
}

// SPDX-License-Identifier: Apache-2.0

package quietlog

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
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

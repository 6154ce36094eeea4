// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParseStat(t *testing.T) {
	good := statLine(1, "a (b) c\n\xff", "D", 12, 3, 400)
	s, ok := parseStat([]byte(good))
	if want := (stat{"a (b) c\n\uFFFD", "D", 150 * time.Millisecond, 4 * time.Second}); !ok || s != want {
		t.Errorf("%q is %+v, want %+v", good, s, want)
	}
	for _, bad := range []string{"", "1 (a", ") (", "1 (a) S 1 2", strings.Replace(good, " 12 ", " -12 ", 1), strings.Replace(good, " 400 ", " 9223372036854775807 ", 1)} {
		if s, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q is %+v", bad, s)
		}
	}
}

func TestParseSchedstat(t *testing.T) {
	if run, wait, ok := parseSchedstat([]byte("5 7 1\n")); run != 5 || wait != 7 || !ok {
		t.Errorf("got %v, %v, %v", run, wait, ok)
	}
	for _, bad := range []string{"", "0 0 0\n", "1 2", "-1 2 3", "1 x 3"} {
		if _, _, ok := parseSchedstat([]byte(bad)); ok {
			t.Errorf("%q says something", bad)
		}
	}
}

func TestParseSwitches(t *testing.T) {
	const lines = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"
	if v, i, ok := parseSwitches([]byte(lines)); v != 5 || i != 7 || !ok {
		t.Errorf("got %d, %d, %v", v, i, ok)
	}
	for _, bad := range []string{"", "voluntary_ctxt_switches:\t5\n", "voluntary_ctxt_switches:\t-5\nnonvoluntary_ctxt_switches:\t7\n"} {
		if _, _, ok := parseSwitches([]byte(bad)); ok {
			t.Errorf("%q is complete", bad)
		}
	}
}

func TestParseWchan(t *testing.T) {
	for text, want := range map[string]string{"0": "", "": "", "ep_poll": "ep_poll", "a.constprop.0.isra.1\n": "a", "\xff": "\uFFFD"} {
		if got := parseWchan([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(statLine(1, "a) S (", "R", 1, 2, 3)))
	f.Add([]byte("1 2 3\n"))
	f.Add([]byte("voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, ok := parseStat(data); ok && (s.cpu < 0 || s.started < 0 || !utf8.ValidString(s.name)) {
			t.Errorf("%q is %+v", data, s)
		}
		if run, wait, ok := parseSchedstat(data); ok && (run < 0 || wait < 0) {
			t.Errorf("%q: %v, %v", data, run, wait)
		}
		_, _, _ = parseSwitches(data)
		if w := parseWchan(data); !utf8.ValidString(w) || strings.Contains(w, ".") {
			t.Errorf("%q waits in %q", data, w)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	rest := " S 1" + strings.Repeat(" 0", 17) + " 4711 0 0\n"
	for text, want := range map[string]process{
		"7 (sh)" + rest:                {4711, "sh"},
		"7 (a) b\n (c)" + rest:         {4711, "a) b\n (c"},
		"7 ()" + rest:                  {4711, ""},
		"7 (\xff\xfe (evil) 1)" + rest: {4711, "\xff\xfe (evil) 1"},
	} {
		if got, ok := parseStat([]byte(text)); !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, bad := range []string{"", "7 (sh", "7 sh) S", "7 (sh) S 1", "7 (sh) S 1" + strings.Repeat(" 0", 17) + " -1 0"} {
		if got, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

// A machine that has been up for years starts processes too.
func TestStarted(t *testing.T) {
	for start, want := range map[uint64]time.Duration{
		0: 0, 4711: 47110 * time.Millisecond, 3 * 365 * 24 * 3600 * 100: 3 * 365 * 24 * time.Hour,
		math.MaxUint64: math.MaxInt64 / (10 * time.Millisecond) * (10 * time.Millisecond),
	} {
		if got := (process{start: start}).started(); got != want {
			t.Errorf("%d ticks are %v, want %v", start, got, want)
		}
	}
}

func paths(maps string) (all []string) {
	eachMapping(strings.NewReader(maps), func(p []byte) { all = append(all, string(p)) })
	return all
}

func TestEachMapping(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	got := paths("1-2 r-xp 0 00:06 1   /bin/a b (deleted)\n" +
		"2-3 r-xp 0 00:06 1   /bin/a b (deleted)\n" + // the next part of it
		"3-4 rw-p 0 00:00 0 \n" +
		"4-5 rw-p 0 00:00 0   [heap]\n" +
		"5-6 " + long + "\n" +
		"6-7 r--p 0 00:06 2 /lib/c\\012d\n" +
		"7-8 r--p 0 00:06 2 /cut sho")
	if want := []string{"/bin/a b (deleted)", "/lib/c\\012d", "/cut sho"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]string{
		"max\n": "0 true", "-1\n": "0 true", "67108864\n": "67108864 true",
		"9223372036854771712\n": "0 true", // version 1 without a limit
		"":                      "0 false", "-2\n": "0 false", "1 2\n": "0 false", "99999999999999999999\n": "0 false",
	} {
		n, ok := parseLimit([]byte(text))
		if !ok {
			n = 0
		}
		if got := fmt.Sprint(n, ok); got != want {
			t.Errorf("parseLimit(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestParseCPUMax(t *testing.T) {
	for text, want := range map[string]string{
		"max 100000\n": "0 100000 true", "20000 100000\n": "20000 100000 true",
		"max\n": "0 0 false", "x 1\n": "0 1 false", "": "0 0 false",
	} {
		quota, period, ok := parseCPUMax([]byte(text))
		if got := fmt.Sprint(quota, period, ok); got != want {
			t.Errorf("parseCPUMax(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestSharesOfWeight(t *testing.T) {
	for weight, want := range map[uint64]uint64{1: 2, 100: 2597, 10_000: 262_144} {
		if got, ok := sharesOfWeight(weight); got != want || !ok {
			t.Errorf("sharesOfWeight(%d) = %d, want %d", weight, got, want)
		}
	}
	for _, weight := range []uint64{0, 10_001, math.MaxUint64} {
		if _, ok := sharesOfWeight(weight); ok {
			t.Errorf("%d is taken for a weight", weight)
		}
	}
}

// lines collects the results of a parser.
func lines(parse func(add func(...any))) string {
	var all []string
	parse(func(what ...any) {
		for i, w := range what {
			if b, ok := w.([]byte); ok {
				what[i] = string(b)
			}
		}
		all = append(all, strings.TrimSuffix(fmt.Sprintln(what...), "\n"))
	})
	return strings.Join(all, ", ")
}

func TestParseLines(t *testing.T) {
	flat := func(text string) string {
		return lines(func(add func(...any)) { ParseFlat([]byte(text), func(k []byte, v uint64) { add(k, v) }) })
	}
	pressure := func(text string) string {
		return lines(func(add func(...any)) { parsePressure([]byte(text), func(k []byte, v uint64) { add(k, v) }) })
	}
	ioStat := func(text string) string {
		return lines(func(add func(...any)) {
			parseIOStat([]byte(text), func(a, b uint32, k []byte, v uint64) { add(a, b, k, v) })
		})
	}
	blkio := func(text string) string {
		return lines(func(add func(...any)) {
			parseBlkio([]byte(text), func(a, b uint32, k []byte, v uint64) { add(a, b, k, v) })
		})
	}
	for _, tt := range []struct {
		what       string
		parse      func(string) string
		text, want string
	}{
		{"flat", flat, "anon 12\nfile 34\n", "anon 12, file 34"},
		{"flat, limits", flat, "sgx_epc max\nsev 5\n", "sev 5"},
		{"flat, nonsense", flat, "\n 5\nx\ny -1\nz 1 2\nlast 7", "last 7"},
		{"pressure", pressure, "some avg10=0.00 avg60=0.12 avg300=0.02 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4\n", "some 123, full 4"},
		{"pressure of CPUs before 5.13", pressure, "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n", "some 9"},
		{"pressure, nonsense", pressure, "some\ntotal=4\nfull total=x\n", ""},
		{"I/O", ioStat, "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n", "8 0 rbytes 1, 8 0 wbytes 2, 8 0 rios 3, 8 0 wios 4, 8 0 dbytes 0, 8 0 dios 0"},
		{"I/O, a device without numbers", ioStat, "7:0 \n7:1 8:16 rbytes=5\n", "8 16 rbytes 5"},
		{"I/O, nonsense", ioStat, "rbytes=1\nx:y rbytes=2\n8:0 rbytes=z wios=1\n", "8 0 wios 1"},
		{"blkio", blkio, "254:1 Read 10\n254:1 Write 20\n254:1 Total 30\nTotal 30\n", "254 1 Read 10, 254 1 Write 20, 254 1 Total 30"},
		{"blkio, nonsense", blkio, "254:1\n254:1 Read\n254:x Read 1\n", ""},
	} {
		if got := tt.parse(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
}

func TestAppendProcs(t *testing.T) {
	if got, want := appendProcs([]int{1}, []byte("12\n0\n345\nx\n-1\n99999999999\n7")), []int{1, 12, 345, 7}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/lib/text"
)

// The output of a command may have anything in it.

func seed(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("%s: %v, %v", pattern, files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// sound checks what holds for all outcomes.
func sound(t *testing.T, all []Outcome) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range all {
		if o.Name == "" || strings.ContainsAny(o.Name, " \t\n\"'") || len(o.Name) > 2*maxName+100 || seen[o.Name] {
			t.Errorf("the name %q is empty, unsafe, too long or not unique", o.Name)
		}
		seen[o.Name] = true
		if math.IsNaN(o.Value) || math.IsInf(o.Value, 0) || o.Unit == Errors && o.Value < 0 || o.Unit == Seconds && o.Value == 0 && strings.Contains(o.Name, "latency") {
			t.Errorf("%s is %v %s", o.Name, o.Value, o.Unit)
		}
		if o.From == "" || !utf8.ValidString(o.Note) || !text.IsLabel(o.Note) || len(o.Note) > maxNote {
			t.Errorf("%s is from %q with the note %q", o.Name, o.From, o.Note)
		}
	}
	if len(all) > maxOutcomes {
		t.Errorf("%d outcomes", len(all))
	}
}

func FuzzRead(f *testing.F) {
	seed(f, "*")
	f.Add([]byte("Unit x better=lower\nBenchmarkX-2 1 -5 x 3 p99-ns\r\n" + cutMark))
	f.Add([]byte("This is ApacheBench, Version 2.3\nFailed requests: 1\n(Connect:\x15" + strings.Repeat("1", maxNote) + ")\n"))
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, Read(data)) })
}

func FuzzHyperfineJSON(f *testing.F) {
	seed(f, "hyperfine*.json")
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, named(hyperfineJSON(data))) })
}

func FuzzGoogleJSON(f *testing.F) {
	seed(f, "googlebenchmark*.json")
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, named(googleJSON(data))) })
}

func FuzzMemtierJSON(f *testing.F) {
	seed(f, "memtier*.json")
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, named(memtierJSON(data))) })
}

func FuzzPattern(f *testing.F) {
	f.Add(`p99:ms=p99 = ([0-9.]+)`, []byte("p99 = 12.5ms\n"))
	f.Add(`x::lower=(\S*)`, []byte("1,234 -0x1p-2 1_0"))
	f.Fuzz(func(t *testing.T, spec string, output []byte) {
		p, err := Parse(spec)
		if err != nil {
			return
		}
		found, err := p.Find(output)
		if (err == nil) != (len(found) == 1) {
			t.Errorf("%q finds %v, %v", spec, found, err)
		}
		for _, o := range found {
			if math.IsNaN(o.Value) || math.IsInf(o.Value, 0) || o.Name == "" {
				t.Errorf("%q finds %+v", spec, o)
			}
		}
	})
}

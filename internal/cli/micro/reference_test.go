// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/outcome"
)

// Half of the time of the reference, with an interval of 0.4 to 0.6 of it, is 0.4/1.25 to 0.6/0.82 times the reference of 67 [55, 84].
func TestReferences(t *testing.T) {
	out := []byte("BenchmarkThreads\t1500\t33500.00 ns/op\nthreads: 33500.00 ns/op [26800.00, 40200.00], median of 20 slices of time with its interval at 95 %\n")
	here, ok := measured(out)
	if want := (span{33500, 26800, 40200}); !ok || here != want {
		t.Fatalf("%+v, %v", here, ok)
	}
	var b bytes.Buffer
	compare(&b, "threads", here)
	for _, want := range []string{"without an enclave: 67 µs [55 µs to 84 µs] (median of 20 slices", "AMD EPYC", "Here it is 0.319 to 0.731 times that.", "under gramine-direct 1.8: 2.7 ms to 3.5 ms (lowest"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
	if with, without := outcome.Read(append(out, b.Bytes()...)), outcome.Read(out); len(with) != len(without) {
		t.Errorf("record reads %v, want %v", with, without)
	}
	for _, other := range []string{"", "threads: x ns/op [1, 2]", "threads: 0 ns/op [0, 0]"} {
		if s, ok := measured([]byte(other)); ok {
			t.Errorf("%q is %v", other, s)
		}
	}
}

// Each benchmark has references, and the documentation has their figures.
func TestReferencesAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../../docs/user/record.md")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`[0-9.]+( to [0-9.]+)? [nµm]s`)
	for _, r := range references {
		for _, name := range Names() {
			s, known := r.took[name]
			if !known {
				t.Errorf("%s has no reference %s", name, r.where)
				continue
			}
			want := text.Seconds(s.middle / 1e9)
			if s.middle == 0 {
				want = text.Seconds(s.high / 1e9)
			}
			found := false
			for _, row := range regexp.MustCompile("(?m)^\\| `"+name+"` \\|.*$").FindAllString(string(data), -1) {
				for _, n := range number.FindAllString(row, -1) {
					found = found || n == want || strings.HasSuffix(n, " to "+want)
				}
			}
			if !found {
				t.Errorf("docs/user/record.md does not have %s for %s %s", want, name, r.where)
			}
		}
	}
}

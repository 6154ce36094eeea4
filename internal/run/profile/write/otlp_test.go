// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read"
)

// many returns a profile of samples, a tenth of a millisecond apart, of a number of stacks.
func many(t *testing.T, samples, stacks int) *profile.Profile {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	var frames []uint32
	for i := range 1000 {
		f, err := b.Frame(profile.Frame{Function: "function" + strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f)
	}
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range samples {
		n := i % stacks
		err := b.AddAt(began.UnixNano()+int64(i)*1e5, []uint32{frames[n%1000], frames[n/1000]}, []profile.Label{{Key: "pid", Value: "1"}}, 1, 1e7)
		if err != nil {
			t.Fatal(err)
		}
	}
	p := b.Profile()
	p.Began, p.Lasted = began, time.Duration(samples)*1e5
	return p
}

// TestOTLPIsNotLargerThanItsReaderAccepts: 45 s of 100 CPUs have too many times for a request.
func TestOTLPIsNotLargerThanItsReaderAccepts(t *testing.T) {
	p := many(t, 450_000, 3000)
	data := written(t, "otlp", p)
	for _, times := range []bool{false, true} {
		again, err := read.Read(bytes.NewReader(data), read.Options{Times: times}, profile.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if again.Total() != p.Total() || again.Taken() != p.Taken() {
			t.Errorf("with times %v: %d of %.0f samples, want %d of %.0f", times, again.Total(), again.Taken(), p.Total(), p.Taken())
		}
		if !times {
			continue
		}
		if n := len(again.Samples); n < 3000*45 || n > 3000*91 {
			t.Errorf("%d samples, want 3000 in each of 90 buckets", n)
		}
		for _, s := range again.Samples {
			if at := s.At - p.Began.UnixNano(); at < 0 || at > int64(p.Lasted) || at%bucket != 0 {
				t.Fatalf("a time %v after the beginning", time.Duration(at))
			}
		}
	}
}

// TestOTLPThatIsTooLargeIsRefused: these stacks have too many names and no times to leave out.
func TestOTLPThatIsTooLargeIsRefused(t *testing.T) {
	p := many(t, 1000, 1000)
	for i := range p.Frames {
		p.Frames[i].Function += strings.Repeat("x", 9000)
	}
	f, err := Choose("otlp", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(io.Discard, p, ""); !errors.Is(err, profile.ErrLimit) || !strings.Contains(err.Error(), "use the format pprof") {
		t.Errorf("%v", err)
	}
}

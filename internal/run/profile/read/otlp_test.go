// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// inFormat writes a profile.
func inFormat(t testing.TB, p *profile.Profile, name string) string {
	t.Helper()
	f, err := write.Choose(name, "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b, p, "test"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOTLPIsReadByTheLibraryOfTheCollector writes recordings of perf as OTLP. The collector's own library must find each sample
// with its frames and value in them, and reading them gives the same stacks.
func TestOTLPIsReadByTheLibraryOfTheCollector(t *testing.T) {
	for _, name := range []string{"shapes-flat.txt", "python.txt.gz", "shapes-srcline.txt.gz"} {
		p, err := Open("testdata/"+name, Options{})
		if err != nil {
			t.Fatal(err)
		}
		data := inFormat(t, p, "otlp")
		theirs, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if n := theirs.ProfileCount(); n != len(p.Values) {
			t.Errorf("%s: %d profiles of %d values", name, n, len(p.Values))
		}
		for v := range p.Values {
			want := map[string]int64{}
			for _, s := range p.Samples {
				want[key(len(s.Stack), func(i int) string { return p.Frames[s.Stack[i]].Function })] += s.Values[v]
			}
			got := map[string]int64{}
			d := theirs.Dictionary()
			for _, s := range theirs.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(v).Samples().All() {
				stack := d.StackTable().At(int(s.StackIndex())).LocationIndices()
				got[key(stack.Len(), func(i int) string {
					lines := d.LocationTable().At(int(stack.At(i))).Lines()
					if lines.Len() == 0 {
						return ""
					}
					return d.StringTable().At(int(d.FunctionTable().At(int(lines.At(0).FunctionIndex())).NameStrindex()))
				})] += s.Values().At(0)
			}
			for k, n := range want {
				if n > 0 && got[k] != n {
					t.Errorf("%s: %q has %d, want %d", name, k, got[k], n)
				}
			}
		}
		again, err := Read(strings.NewReader(data), Options{}, profile.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if inFormat(t, again, "folded") != inFormat(t, p, "folded") {
			t.Errorf("%s: other stacks after it was written and read", name)
		}
	}
}

func key(n int, name func(int) string) string {
	var all []string
	for i := range n {
		all = append(all, name(i))
	}
	return strings.Join(all, ";")
}

// TestBrokenOTLPIsRefused cuts and changes a request at each place. Nothing panics.
func TestBrokenOTLPIsRefused(t *testing.T) {
	p, err := Open("testdata/shapes-flat.txt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(inFormat(t, p, "otlp"))
	refused := 0
	for i := range data {
		broken := bytes.Clone(data)
		broken[i] ^= 0x7f
		for _, b := range [][]byte{broken, data[:i]} {
			if _, err := Read(bytes.NewReader(b), Options{}, profile.DefaultLimits()); err != nil {
				refused++
			}
		}
	}
	if refused < len(data) {
		t.Errorf("%d of %d broken requests are refused", refused, 2*len(data))
	}
}

// TestOTLPKeepsTimes writes samples with times. The collector's library finds a value for each time, one sample for each stack with
// its labels, and times within the profile. Read again with times, they are the same; without times, they are added up.
func TestOTLPKeepsTimes(t *testing.T) {
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	second := func(n int64) int64 { return began.UnixNano() + n*1e9 }
	type taken struct {
		function, thread string
		at, samples      int64
	}
	want := []taken{{"work", "1", second(0), 3}, {"work", "1", second(5), 4}, {"work", "2", second(5), 5}, {"scan", "1", second(0), 6}, {"scan", "1", 0, 7}}
	for _, i := range []int{4, 1, 3, 0, 2} { // in no order
		w := want[i]
		f, err := b.Frame(profile.Frame{Function: w.function})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddAt(w.at, []uint32{f}, []profile.Label{{Key: profile.Thread, Value: w.thread}}, w.samples, 1000*w.samples); err != nil {
			t.Fatal(err)
		}
	}
	p := b.Profile()
	p.Began, p.Lasted = began, 10*time.Second
	data := inFormat(t, p, "otlp")
	theirs, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	for v := range p.Values {
		one := theirs.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(v)
		if one.Time().AsTime() != began || one.DurationNano() != 10e9 {
			t.Errorf("the profile begins at %v and takes %d ns", one.Time().AsTime(), one.DurationNano())
		}
		lengths := map[string]int{} // samples by the number of their values and times
		for _, s := range one.Samples().All() {
			lengths[fmt.Sprint(s.Values().Len(), " ", s.TimestampsUnixNano().Len())]++
			for _, at := range s.TimestampsUnixNano().All() {
				if at < uint64(second(0)) || at >= uint64(second(10)) {
					t.Errorf("a sample at %d is outside of its profile", at)
				}
			}
		}
		if want := map[string]int{"2 2": 1, "1 1": 2, "1 0": 1}; !maps.Equal(lengths, want) {
			t.Errorf("samples by their values and times: %v, want %v", lengths, want)
		}
	}
	for _, keeps := range []bool{true, false} {
		again, err := Read(strings.NewReader(data), Options{Times: keeps}, profile.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if again.Began.UnixNano() != began.UnixNano() || again.Lasted != p.Lasted {
			t.Errorf("it begins at %v and takes %v", again.Began, again.Lasted)
		}
		got, all := map[taken]int64{}, map[taken]int64{}
		for _, s := range again.Samples {
			got[taken{again.Frames[s.Stack[0]].Function, again.Label(&s, profile.Thread), s.At, 0}] += s.Values[0]
		}
		for _, w := range want {
			if !keeps {
				w.at = 0
			}
			all[taken{w.function, w.thread, w.at, 0}] += w.samples
		}
		if !maps.Equal(got, all) {
			t.Errorf("with times %t: %v, want %v", keeps, got, all)
		}
	}
	// A client may count one at each time, and give other numbers of values than of times.
	first := theirs.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	for _, s := range first.Samples().All() {
		if s.Values().Len() == 2 {
			s.Values().FromRaw(nil)
		} else {
			s.TimestampsUnixNano().FromRaw([]uint64{1, 2, 3})
		}
	}
	changed, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(theirs)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(bytes.NewReader(changed), Options{Times: true}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var times []int64
	samples := int64(0)
	for _, s := range again.Samples {
		if samples += s.Values[0]; s.At > 0 {
			times = append(times, s.At)
		}
	}
	// The profile of the other value is as before, with the times of all samples.
	all := []int64{second(0), second(0), second(5), second(5)}
	if slices.Sort(times); samples != 1+1+5+6+7 || !slices.Equal(times, all) {
		t.Errorf("%d samples at %v", samples, times)
	}
}

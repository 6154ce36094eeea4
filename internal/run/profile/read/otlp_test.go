// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"strings"
	"testing"

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

// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/write"
)

// FuzzRead reads any bytes. What is a profile obeys its limits, has names that are labels, adds up, and can be written
// and read again with the same total. Errors can be printed.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"shapes-flat.txt", "shares.report", "python.txt.gz", "shapes-srcline.txt.gz"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(stored(f, "file.data"))
	f.Add(unpacked(f, "gramine-stack.data"))
	f.Add([]byte("a 1 0.0: one: 1000 f\na 1 0.0: \x1f: 1000 f\n"))
	f.Add([]byte(callgrindFile))
	f.Add([]byte(straceTable))
	f.Add([]byte(vtuneTable))
	if p, err := Open("testdata/shapes-flat.txt", Options{}); err == nil {
		f.Add([]byte(inFormat(f, p, "otlp")))
	}
	f.Add([]byte("main;f;read_[k] 3\nmain;[unknown] 1.5\n"))
	f.Add([]byte("my prog 12/13 [001] 1.0: 250 cycles:u: \n\t7f0 g(int)+0x1 (/a (deleted))\n  a.c:3\n\t7f0 h (inlined)\n\n"))
	f.Add([]byte(encoded(f, realPprof(), false)))
	f.Add([]byte(encoded(f, realPprof(), true)))
	limits := profile.Limits{Stacks: 1000, Depth: 100, Frames: 1000, Labels: 100, Name: 200, Bytes: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(bytes.NewReader(data), Options{}, limits)
		if err != nil {
			if !text.IsLabel(err.Error()) && strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("the error %q cannot be printed", err)
			}
			return
		}
		if len(p.Samples) == 0 || len(p.Samples) > limits.Stacks || len(p.Frames) > limits.Frames || len(p.LabelSets) > limits.Labels {
			t.Errorf("%d samples, %d frames, %d sets of labels", len(p.Samples), len(p.Frames), len(p.LabelSets))
		}
		for _, frame := range p.Frames {
			if !text.IsLabel(frame.Name()) || !text.IsLabel(frame.Library) || !text.IsLabel(frame.File) || len(frame.Function) > limits.Name {
				t.Errorf("frame %+v", frame)
			}
		}
		for i := range p.Values {
			p.Main = i
			same(t, p)
		}
	})
}

// same divides a profile, and writes and reads it.
func same(t *testing.T, p *profile.Profile) {
	total := p.Total()
	if total == 0 {
		return
	}
	var sum, absolute int64
	for _, r := range p.By("function", 3, profile.Shares()).Rows {
		sum += r.Self
		absolute += r.Absolute
	}
	if sum != total || absolute != profile.Shares().Amount {
		t.Errorf("rows add up to %d of %d, and to %d", sum, total, absolute)
	}
	for _, name := range write.Names() {
		format, err := write.Choose(name, "")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := format.Write(&b, p, "title"); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name != "pprof" && name != "folded" || name == "folded" && recognise(b.Bytes()) == perfScript {
			continue // names of functions can look like the first line of another format
		}
		again, err := Read(&b, Options{}, profile.DefaultLimits())
		if err != nil {
			t.Errorf("%s cannot be read again: %v", name, err)
			continue
		}
		if again.Format != map[string]string{"pprof": "pprof", "folded": "folded stacks"}[name] {
			t.Errorf("%s is read as %s", name, again.Format)
		}
		if name == "pprof" {
			again.Main = p.Main
		}
		if got := again.Total(); got != total {
			t.Errorf("%s: the total is %d, want %d", name, got, total)
		}
	}
}

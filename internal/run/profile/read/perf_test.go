// SPDX-License-Identifier: Apache-2.0

package read

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
)

// reported reads the numbers of samples by function of an event in a report of perf. Functions that perf shows by their
// address are under "".
func reported(t *testing.T, file, event string) map[string]int64 {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^\s+[0-9.]+%\s+([0-9]+)\s+\[[.kuHg]\] (.+)$`)
	counts, in := map[string]int64{}, false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "# Samples:") {
			in = strings.HasSuffix(line, "of event '"+event+"'")
		}
		m := row.FindStringSubmatch(line)
		if m == nil || !in {
			continue
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		name := m[2]
		if strings.HasPrefix(name, "0x") {
			name = ""
		}
		counts[name] += n
	}
	return counts
}

// bySelf sums up the first value by the innermost function.
func bySelf(p *profile.Profile) map[string]int64 {
	counts := map[string]int64{}
	for _, s := range p.Samples {
		counts[p.Frames[s.Stack[0]].Function] += s.Values[0]
	}
	return counts
}

// TestRecordingsEqualPerfsReport compares the number of samples of each function with perf's own count.
func TestRecordingsEqualPerfsReport(t *testing.T) {
	for _, tt := range []struct {
		file, event, read string
		samples, weight   int64 // of perf report: "Samples" and "Event count"
	}{
		{"shares.txt.gz", "cpu-clock", "", 271, 1361808875},
		{"shapes-srcline.txt.gz", "cpu-clock", "", 74, 247491594},
		{"shapes-flat.txt", "cpu-clock", "", 13, 131313130},
		{"python.txt.gz", "cpu-clock", "", 92, 92092092},
		{"two-events.txt.gz", "cpu-clock", "cpu-clock", 15, 75376875},
		{"two-events.txt.gz", "page-faults", "page-faults", 5, 581},
	} {
		t.Run(tt.file+" "+tt.event, func(t *testing.T) {
			p, err := Open(filepath.Join("testdata", tt.file), Options{Event: tt.read})
			if err != nil {
				t.Fatal(err)
			}
			base, _, _ := strings.Cut(tt.file, ".")
			got, want := bySelf(p), reported(t, filepath.Join("testdata", base+".report"), tt.event)
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%q has %d samples, perf counts %d", name, got[name], want[name])
				}
			}
			if len(want) == 0 || len(got) != len(want) {
				t.Errorf("%d functions, perf has %d", len(got), len(want))
			}
			var samples, weight int64
			for _, s := range p.Samples {
				samples += s.Values[0]
				weight += s.Values[1]
			}
			if samples != tt.samples || weight != tt.weight || p.Total() != weight {
				t.Errorf("%d samples of %d, perf has %d of %d", samples, weight, tt.samples, tt.weight)
			}
		})
	}
}

func TestPerfScriptFields(t *testing.T) {
	p, err := Open("testdata/shapes-srcline.txt.gz", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := profile.Frame{Function: "inlines", Library: "/tmp/shapes", File: "shapes.cc", Line: 8}
	kernel := profile.Frame{Function: "do_syscall_64", Library: "[kernel.kallsyms]", Kernel: true}
	found := map[profile.Frame]bool{}
	for _, f := range p.Frames {
		found[f] = true
	}
	if !found[want] || !found[kernel] {
		t.Errorf("frames %v and %v: %v, %v", want, kernel, found[want], found[kernel])
	}
	if s := &p.Samples[0]; p.Label(s, profile.Process) != "shapes" || p.Label(s, profile.PID) != "20420" || p.Label(s, profile.Thread) != "20420" {
		t.Errorf("labels are %v", p.LabelSets[s.Labels])
	}
	if ns, ok := p.Nanoseconds(); !ok || ns != 247491594 {
		t.Errorf("time is %d ns, %v", ns, ok)
	}
}

// TestPerfScriptLines has lines in the notation of perf-script(1) that the recordings do not have.
func TestPerfScriptLines(t *testing.T) {
	const in = "# ========\n# captured on: x\n#\n" +
		"my prog 1 12/13 [001]   10.000001: PERF_RECORD_LOST lost 7\n" +
		"my prog 1 12/13 [001]   10.000002: sched:sched_switch: prev_comm=a prev_pid=1 ==> next_comm=b: 3\n" +
		"\tffffffff81000130 __schedule+0x1 ([kernel.kallsyms])\n" +
		"\tffffffffc0a00130 ip_do+0x2 ([nf_tables])\n" +
		"\t    7f0000001000 a::f(int (*)(char))+0x1f (/opt/a b (deleted))\n" +
		"\t    7f0000001000 inlined_one (inlined)\n" +
		"\t    7f0000001000 b::g (/lib/b(1).so)\n" +
		"\t    7f0000001001 [unknown] (/tmp/perf-12.map)\n" +
		"\t    7f0000001002 [unknown] ([unknown])\n\n" +
		"kworker/0:1-ev 99 [000] 11.1: sched:sched_switch: prev_comm=kworker/0:1\n\n"
	p, err := Read(strings.NewReader(in), Options{}, profile.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := []profile.Frame{
		{Function: "__schedule", Library: "[kernel.kallsyms]", Kernel: true}, {Function: "ip_do", Library: "[nf_tables]", Kernel: true},
		{Function: "a::f(int (*)(char))", Library: "/opt/a b (deleted)"}, {Function: "inlined_one", Library: "/lib/b(1).so"},
		{Function: "b::g", Library: "/lib/b(1).so"}, {Library: "/tmp/perf-12.map"}, {},
	}
	if len(p.Samples) != 2 || len(p.Samples[0].Stack) != len(want) {
		t.Fatalf("samples are %v", p.Samples)
	}
	for i, f := range p.Samples[0].Stack {
		if p.Frames[f] != want[i] {
			t.Errorf("frame %d is %+v, want %+v", i, p.Frames[f], want[i])
		}
	}
	if s := &p.Samples[0]; p.Label(s, profile.Process) != "my prog 1" || p.Label(s, profile.PID) != "12" || p.Label(s, profile.Thread) != "13" {
		t.Errorf("labels are %v", p.LabelSets[s.Labels])
	}
	if s := &p.Samples[1]; p.Label(s, profile.Process) != "kworker/0:1-ev" || p.Frames[s.Stack[0]].Resolved() {
		t.Errorf("a sample without a stack is %v", s)
	}
	if len(p.Notes) != 1 || p.Notes[0] != "the kernel lost 7 samples" {
		t.Errorf("notes are %q", p.Notes)
	}
	if len(p.Values) != 1 || !p.Values[0].IsSamples() {
		t.Errorf("values are %v", p.Values)
	}
}

// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/run/profile"
)

// stack is a stack of a workload, the innermost function first, with its samples. Functions of the kernel begin with "k:".
type stack struct {
	workload string
	frames   []string
	samples  int64
}

// stacked is a profile of one minute.
func stacked(t *testing.T, at time.Time, stacks ...stack) []byte {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	for _, s := range stacks {
		var frames []uint32
		for _, name := range s.frames {
			function, kernel := strings.CutPrefix(name, "k:")
			library := "/bin/" + s.workload
			if kernel {
				library = "[kernel.kallsyms]"
			}
			f, err := b.Frame(profile.Frame{Function: function, Library: library, Kernel: kernel})
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, f)
		}
		if err := b.Add(frames, []profile.Label{{Key: profile.Workload, Value: s.workload}}, s.samples, s.samples*50e6); err != nil {
			t.Fatal(err)
		}
	}
	return encoded(t, b, at)
}

// The shares are computed by hand. In the kernel, db has 40 samples: 30 by calls of log, 10 by a function without a name.
func TestFunctionsOfWorkloads(t *testing.T) {
	s := filled(t, 0, nil)
	for i, half := range [][]stack{
		{{"db", []string{"scan", "main"}, 50}, {"db", []string{"k:copy", "k:sys_write", "log", "main"}, 30}, {"web", []string{"work"}, 15}},
		{{"db", []string{"scan", "main"}, 10}, {"db", []string{"k:fault", "", "main"}, 10}, {"web", []string{"work"}, 4}},
	} {
		if err := s.add(stacked(t, epoch.Add(time.Duration(i)*time.Minute), half...)); err != nil {
			t.Fatal(err)
		}
	}
	cpu, calls := codelink.Key{Event: codelink.CPU, Workload: "db"}, codelink.Key{Event: codelink.Calls, Workload: "db"}
	whole := codelink.Key{Event: codelink.CPU}
	asked := []codelink.Key{cpu, calls, whole, {Event: codelink.CPU, Workload: "web"}, {Event: codelink.Waits, Workload: "db"}, {Event: codelink.CPU, Workload: "none"}}
	found := s.Functions(t.Context(), asked, epoch, epoch.Add(2*time.Minute))
	if len(found) != 3 { // web has 19 samples
		t.Fatalf("%v", found)
	}
	for key, want := range map[codelink.Key]struct {
		samples int
		unnamed float64
		top     string
	}{
		cpu: {100, 0, "scan 0.600, copy 0.300, fault 0.100"}, calls: {40, 0.25, "log 0.750"},
		whole: {119, 0, "scan 0.504, copy 0.252, work 0.160, fault 0.084"},
	} {
		var top []string
		for _, f := range found[key].Top {
			top = append(top, fmt.Sprintf("%s %.3f", f.Name, f.Share))
			if !(f.Low < f.Share && f.Share < f.High) {
				t.Errorf("%v: the interval of %s is %v to %v", key, f.Name, f.Low, f.High)
			}
		}
		if got := found[key]; got.Samples != want.samples || math.Abs(got.Unnamed-want.unnamed) > 1e-9 || strings.Join(top, ", ") != want.top {
			t.Errorf("%v: %+v, want %+v", key, got, want)
		}
	}
	status, body, _ := get(s, fmt.Sprintf("/api/profiles?workload=db&event=cpu&start=%d&end=%d", epoch.Unix(), epoch.Add(2*time.Minute).Unix()))
	if status != 200 || !strings.Contains(body, `"functions":{"samples":100,"unnamed":0,"top":[{"name":"scan","share":0.6,`) {
		t.Errorf("status %d: %s", status, body)
	}
	found = s.Functions(t.Context(), asked, epoch, epoch.Add(2*time.Minute))
	if again := s.Functions(t.Context(), asked, epoch.Add(time.Second), epoch.Add(2*time.Minute)); again[cpu] != found[cpu] {
		t.Error("the same profiles are read twice")
	}
	if one := s.Functions(t.Context(), asked[:1], epoch, epoch.Add(2*time.Minute)); one[cpu] != found[cpu] {
		t.Error("the same profiles are read again for one of the keys")
	}
	if err := s.add(stacked(t, epoch.Add(2*time.Minute), stack{"db", []string{"scan"}, 100})); err != nil {
		t.Fatal(err)
	}
	if later := s.Functions(t.Context(), asked, epoch, epoch.Add(3*time.Minute)); later[cpu].Samples != 200 {
		t.Errorf("with a third profile: %+v", later[cpu])
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := s.Functions(ended, asked, epoch, epoch.Add(time.Minute)); got != nil {
		t.Errorf("after the end of the time: %v", got)
	}
}

// calls is a profile of OCALLs of one minute: n calls of an OCALL by handle.
func calls(t *testing.T, at time.Time, workload string, n int64) []byte {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "ocalls", Unit: "count"}}, profile.DefaultLimits())
	var frames []uint32
	for _, one := range []profile.Frame{{Function: "ocall_print", Library: "/bin/app"}, {Function: "sgx_ecall", Library: "/lib/libsgx_urts.so.2"}, {Function: "handle", Library: "/bin/app"}} {
		f, err := b.Frame(one)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f)
	}
	if err := b.Add(frames, []profile.Label{{Key: profile.Workload, Value: workload}}, n, 64*n); err != nil {
		t.Fatal(err)
	}
	return encoded(t, b, at)
}

// Profiles of an event of the same time are kept beside those of CPU time, also over a restart. A query is about one event, and
// findings about OCALLs get functions.
func TestProfilesOfEvents(t *testing.T) {
	s := filled(t, 2, nil)
	for i := range 2 {
		if err := s.add(calls(t, epoch.Add(time.Duration(i)*time.Minute), "web", 20)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"5-6-evil.pb.gz", "5-6-cpu.pb.gz", "5-6-.pb.gz", "5-6-ocalls-.pb.gz", "5-6-../x.pb.gz"} {
		if e, ok := parse(name); ok {
			t.Errorf("%s is a profile: %+v", name, e)
		}
	}
	again := New(s.opts)
	if err := again.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	span := "start=" + at(0) + "&end=" + at(2)
	for _, s := range []*Store{s, again} {
		for query, want := range map[string]string{
			"merged?format=folded&" + span:                          "scan 11\nwork 33\n",
			"merged?format=folded&event=cpu&" + span:                "scan 11\nwork 33\n",
			"merged?format=folded&event=ocalls&" + span:             "handle;sgx_ecall;ocall_print 2560\n",
			"merged?format=folded&event=ocalls&workload=db&" + span: "no profile has a sample",
			"merged?format=folded&event=ecalls&" + span:             "no profile has a sample",
			"merged?format=folded&event=cycles&" + span:             "use one of [cpu syscalls ocalls ecalls aex off-cpu]",
			"tree?event=ocalls&" + span:                             "ocall_print",
			"tree?event=aex&" + span:                                "no profile has a sample",
			"tree?event=ocalls&value=ocalls&" + span:                `"type":"ocalls","unit":"count","total":2560,`,
			"tree?event=ocalls&value=wall&" + span:                  "the samples have [samples (count) ocalls (count)]",
			"threads?event=ocalls&value=wall&" + span:               "the samples have [samples (count) ocalls (count)]",
		} {
			_, body, _ := get(s, "/api/profiles/"+query)
			if exact := strings.HasSuffix(want, "\n"); exact && body != want || !strings.Contains(body, want) {
				t.Errorf("%s: %q, want %q", query, body, want)
			}
		}
		_, body, _ := get(s, "/api/profiles?workload=web&event=ocalls&"+span)
		if want := `"events":{"ocalls":2},"functions":{"event":"ocalls","samples":40,"unnamed":0,"top":[{"name":"ocall_print","share":1,`; !strings.Contains(body, `"profiles":2`) || !strings.Contains(body, want) {
			t.Errorf("%s, want %s", body, want)
		}
		if _, body, _ := get(s, "/api/profiles?workload=db&"+span); !strings.Contains(body, `"profiles":2`) || strings.Contains(body, `"events"`) {
			t.Errorf("of a workload without OCALLs: %s", body)
		}
	}
	for _, workload := range []string{"web", "", "db"} {
		if held := s.Held(codelink.OCALLs, workload, epoch, epoch.Add(time.Minute)); held != (workload != "db") || s.Held(codelink.AEXs, workload, epoch, epoch.Add(time.Minute)) {
			t.Errorf("OCALLs of %q are held: %v", workload, held)
		}
	}
	keys := []codelink.Key{{Event: codelink.OCALLs, Workload: "web"}, {Event: codelink.CPU, Workload: "web"}, {Event: codelink.AEXs, Workload: "web"}}
	if found := s.Functions(t.Context(), keys, epoch, epoch.Add(2*time.Minute)); len(found) != 1 || found[keys[0]].Top[0].Name != "ocall_print" {
		t.Errorf("%v", found)
	}
	s.prune(epoch.Add(s.opts.RetentionTime + 90*time.Second))
	if n := len(s.between(codelink.OCALLs, epoch, epoch.Add(time.Hour))); n != 1 {
		t.Errorf("%d profiles of OCALLs are left, want the newer one", n)
	}
}

// All workloads together have the memory of one query. One with too many functions has no shares, because those of a part of its
// samples would differ. The rest is not affected.
func TestFunctionsShareMemory(t *testing.T) {
	s := filled(t, 0, nil)
	stacks := []stack{{"web", []string{"work"}, 30}, {"db", []string{"scan"}, 1000}}
	for i := range 2000 {
		stacks = append(stacks, stack{"db", []string{fmt.Sprint(strings.Repeat("x", 4000), i)}, 1})
	}
	if err := s.add(stacked(t, epoch, stacks...)); err != nil {
		t.Fatal(err)
	}
	asked := []codelink.Key{{Event: codelink.CPU, Workload: "db"}, {Event: codelink.CPU, Workload: "web"}}
	if found := s.Functions(t.Context(), asked, epoch, epoch.Add(time.Minute)); found[asked[0]] == nil || found[asked[0]].Samples != 3000 || found[asked[1]] == nil {
		t.Errorf("of two: %v", found)
	}
	for i := range 18 {
		asked = append(asked, codelink.Key{Event: codelink.CPU, Workload: fmt.Sprint("none", i)})
	}
	if found := s.Functions(t.Context(), asked, epoch, epoch.Add(time.Minute)); len(found) != 1 || found[asked[1]] == nil || found[asked[1]].Samples != 30 {
		t.Errorf("of twenty: %v", found)
	}
}

// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/workload"
)

func TestOnlyWhatNothingMeasuresIsEstimated(t *testing.T) {
	b := New(options(Auto, 1000))
	b.registry, b.processes = workload.NewRegistry[counts](8), map[uint32]*process{}
	probed := &probedFile{sites: []bpf.Site{{}}}
	refused := &probedFile{reason: "operation not permitted"}
	for tgid, p := range map[uint32]*process{
		1: {programOf: programOf{}, enclave: true},                                     // of an unknown runtime
		2: {enclave: true, files: map[*probedFile]bool{probed: true}},                  // measured
		3: {enclave: true, layout: &layout{}},                                          // Gramine
		4: {enclave: true, files: map[*probedFile]bool{refused: true}},                 // the kernel takes no probe
		5: {files: map[*probedFile]bool{}},                                             // no enclave: a simulation
		6: {enclave: true},                                                             // in one group with a measured one
		7: {enclave: true, files: map[*probedFile]bool{probed: true}, runtime: "both"}, // which is this
	} {
		p.owner = b.registry.Join(workload.Identity{Name: string(rune('a' + tgid)), Kind: workload.Program}, time.Now())
		b.processes[tgid] = p
	}
	calls := map[int]GroupCalls{1: {11, 1000}, 2: {12, 1000}, 3: {13, 1000}, 4: {14, 1000}, 6: {16, 1000}, 7: {16, 1000}}
	var asked []int
	b.opts.Calls = func(pids []int) map[int]GroupCalls { asked = pids; return calls }
	told := func() map[string]float64 {
		all := map[string]float64{}
		b.registry.Each(func(w *workload.Workload[counts]) {
			for s, n := range w.Kept.calls {
				if s.family != b.families.estimated || s.labels[0] != "syscalls" {
					t.Errorf("%s has %v %v", w.Name, s.family.Name, s.labels)
				}
				all[w.Name] = n
			}
		})
		return all
	}
	b.estimate()
	if slices.Sort(asked); !slices.Equal(asked, []int{1, 2, 3, 4, 6, 7}) {
		t.Errorf("asked about %v", asked)
	}
	if got := told(); len(got) != 0 {
		t.Errorf("what was called before anybody looked is told: %v", got)
	}
	for pid, c := range calls {
		c.N += uint64(pid)
		calls[pid] = c
	}
	b.estimate()
	if got := told(); len(got) != 2 || got["b"] != 1 || got["e"] != 4 {
		t.Errorf("%v are told, want 1 of b and 4 of e", got)
	}
	calls[1] = GroupCalls{11, 5} // another group has its number: nothing is known of what it did before
	b.estimate()
	calls[1] = GroupCalls{11, 25}
	b.estimate()
	if got := told(); got["b"] != 21 {
		t.Errorf("%v of b, want 21", got["b"])
	}
}

// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/agent/workload"
)

// measuring is a mechanism that counts for some processes.
type measuring map[uint32]bool

func (m measuring) Measures(p *process.Process) bool { return m[p.TGID] }

func (measuring) Examine(*executable.Program, string) (func(*window.File) error, error) {
	return nil, nil
}
func (measuring) Observe(*process.Process) error { return nil }
func (measuring) Tick() error                    { return nil }
func (measuring) Read() error                    { return nil }
func (measuring) Forget(*process.Process) error  { return nil }
func (measuring) Tidy() error                    { return nil }

func TestOnlyUnmeasuredProcessesAreEstimated(t *testing.T) {
	b := New(options(modeAuto, 1000))
	b.processes = process.NewTable(host.Processes{}, 8, time.Now)
	b.mechanisms = mechanisms{measuring{2: true}, measuring{3: true, 7: true}}
	for tgid, p := range map[uint32]process.Process{
		1: {Enclave: true}, // of an unknown runtime
		2: {Enclave: true}, // measured
		3: {Enclave: true}, // measured by another mechanism
		4: {Enclave: true}, // the kernel refuses its probe
		5: {},              // no enclave: a simulation
		6: {Enclave: true}, // in the group of a measured process
		7: {Enclave: true}, // this test process
	} {
		b.processes.Add(tgid, workload.Identity{Name: string(rune('a' + tgid)), Kind: workload.Program}, p)
	}
	calls := map[int]GroupCalls{1: {11, 1000}, 2: {12, 1000}, 3: {13, 1000}, 4: {14, 1000}, 6: {16, 1000}, 7: {16, 1000}}
	var asked []int
	b.opts.Calls = func(pids []int) map[int]GroupCalls { asked = pids; return calls }
	told := func() map[string]float64 {
		all := map[string]float64{}
		count.Emit(b.processes.Workloads(), func(m prometheus.Metric) {
			var d dto.Metric
			if err := m.Write(&d); err != nil {
				t.Fatal(err)
			}
			labels := map[string]string{}
			for _, l := range d.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["source"] != "syscalls" || !strings.Contains(m.Desc().String(), `"teescope_enclave_exits_estimated_total"`) {
				t.Errorf("%v has %v", m.Desc(), labels)
			}
			all[labels["workload"]] = d.GetCounter().GetValue()
		})
		return all
	}
	b.estimate()
	if slices.Sort(asked); !slices.Equal(asked, []int{1, 2, 3, 4, 6, 7}) {
		t.Errorf("queried the processes %v", asked)
	}
	if got := told(); len(got) != 0 {
		t.Errorf("calls before the first look are counted: %v", got)
	}
	for pid, c := range calls {
		c.N += uint64(pid)
		calls[pid] = c
	}
	b.estimate()
	if got := told(); len(got) != 2 || got["b"] != 1 || got["e"] != 4 {
		t.Errorf("counted %v, want 1 of b and 4 of e", got)
	}
	calls[1] = GroupCalls{11, 5} // another group has its number, and its earlier calls are unknown
	b.estimate()
	calls[1] = GroupCalls{11, 25}
	b.estimate()
	if got := told(); got["b"] != 21 {
		t.Errorf("%v of b, want 21", got["b"])
	}
}

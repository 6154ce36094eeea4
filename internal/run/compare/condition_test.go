// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math/rand/v2"
	"testing"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
	"github.com/teescope/teescope/internal/run/runtest"
)

// Others that use the enclave page cache can explain times and paging, and not how often a program calls the kernel.
func TestUseOfTheEnclavePageCacheExplains(t *testing.T) {
	used := func(file, percent string) *Record {
		s := simulated(rand.New(rand.NewPCG(15, 16)), 6, 1)
		for i := range s.Repetitions {
			s.Repetitions[i].Counters = append(s.Repetitions[i].Counters, runtest.Counter(float64(100+i), "sgx_workload_pages_evicted_total"))
		}
		s.Conditions = []run.Condition{{Name: condition.EPCOthers, Value: percent, Kind: "identity"}}
		return record(t, file, s)
	}
	a, b, c := used("a", "5.0"), used("b", "9.9"), used("c", "60.0")
	for id, refused := range map[string]bool{"throughput": true, "sgx_workload_pages_evicted_per_op": true, "syscalls_per_op": false} {
		if v := row(t, compared(t, Options{PerOp: 1}, "", a, b)[0], id).Cells[1].Change.Verdict; v == Refused {
			t.Errorf("5 %% and 9.9 %% explain %s", id)
		}
		if v := row(t, compared(t, Options{PerOp: 1}, "", a, c)[0], id).Cells[1].Change.Verdict; (v == Refused) != refused {
			t.Errorf("5 %% and 60 %%: the verdict of %s is %s", id, v)
		}
	}
}

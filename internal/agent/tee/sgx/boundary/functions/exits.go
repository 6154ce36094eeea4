// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// scaled is the label source of sampled OCALLs whose sum is the number of exits that Gramine counts.
const scaled = "gramine_exits_sampled"

// named are OCALLs with an exit that a window has seen, weighted, by workload and name.
type named map[*count.Workload]map[string]float64

func (n named) add(owner *count.Workload, name string, calls float64) {
	if n[owner] == nil {
		n[owner] = map[string]float64{}
	}
	n[owner][name] += calls
}

// readNamed reads calls. When a window of a file of Gramine ends, it divides the exits since the previous window among the OCALLs
// by the calls in the window, because each exit is one OCALL. OCALLs of workers have no exit.
func (f *Functions) readNamed(ending *window.File, weight float64) error {
	if ending == nil || ending.Runtime != gramineName || f.ReadExits == nil {
		return f.readCalls(ending, weight)
	}
	err := f.ReadExits() // the calls that it has seen are among them
	if !ending.Exact() {
		f.named = named{}
	}
	err = errors.Join(err, f.readCalls(ending, weight))
	for owner, calls := range f.named {
		f.divide(owner, calls, weight, ending.Source(gramine.name+"_uprobe"))
	}
	f.named = nil
	if ending.Exact() { // these exits have their names
		for p := range f.Processes.All() {
			if p.Files[ending] {
				p.Workload.Data.Exits = 0
			}
		}
	}
	return err
}

// divide adds the OCALLs of a workload that left the enclave. If its exits are fewer, each call stands for its weight.
func (f *Functions) divide(owner *count.Workload, calls map[string]float64, weight float64, source string) {
	sum := 0.0
	for _, n := range calls {
		sum += n
	}
	factor := 1.0
	if exits := owner.Data.Exits; exits >= sum/weight && !f.partlyExact(owner) {
		factor, source = exits/sum, scaled
	}
	owner.Data.Exits = 0
	for name, n := range calls {
		count.Add(owner, n*factor, f.Families.OCalls, name, "normal", source)
	}
}

// partlyExact reports whether OCALLs of a workload are counted exactly in another file of Gramine.
func (f *Functions) partlyExact(owner *count.Workload) bool {
	for p := range f.Processes.All() {
		for file := range p.Files {
			if p.Workload == owner && file.Runtime == gramineName && len(file.Sites) > 0 && file.Exact() {
				return true
			}
		}
	}
	return false
}

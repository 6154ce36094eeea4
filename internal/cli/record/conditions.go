// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
)

// describe returns the conditions of the machine and of the command.
func (r *recording) describe(ctx context.Context) []run.Condition {
	subject := condition.Subject{}
	if len(r.Command) > 0 {
		dir, _ := os.Getwd()                                                                            // its conditions are absent without it
		subject = condition.Subject{PID: os.Getpid(), Args: r.Command, Dir: dir, Environ: os.Environ()} // the command inherits the affinity
		if path, err := exec.LookPath(r.Command[0]); err == nil {
			subject.Path, _ = filepath.Abs(path) // the same
		}
	}
	all := conditionsOf(condition.Read(condition.ThisHost(), subject), "")
	if subject.Dir != "" {
		all = append(all, conditionsOf([]condition.Condition{condition.GitState(ctx, subject.Dir)}, "")...)
	}
	return all
}

// describeServers returns the conditions of a process for each rule, with its name before theirs.
func (r *recording) describeServers() []run.Condition {
	var all []run.Condition
	for comm, pid := range r.chooser.servers() {
		subject, err := condition.OfProcess(condition.ThisHost(), pid)
		if err != nil {
			continue // it has ended
		}
		all = append(all, conditionsOf(condition.ReadSubject(condition.ThisHost(), subject), comm+".")...)
	}
	return all
}

// describeImages returns the images of the recorded containers.
func (s *sampler) describeImages() []run.Condition {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []run.Condition
	for _, name := range slices.Sorted(maps.Keys(s.images)) {
		all = append(all, run.Condition{Name: name + ".image", Value: s.images[name], Kind: string(condition.Program)})
	}
	return all
}

func conditionsOf(all []condition.Condition, prefix string) []run.Condition {
	converted := make([]run.Condition, 0, len(all))
	for _, c := range all {
		converted = append(converted, run.Condition{Name: prefix + c.Name, Value: strings.ToValidUTF8(c.Value, "\uFFFD"), Kind: string(c.Kind)})
	}
	return converted
}

// describeEPC returns how much of the enclave page cache others used, or nothing if it is not known.
func (r *recording) describeEPC() []run.Condition {
	if r.epc.n == 0 {
		return nil
	}
	value := strconv.FormatFloat(100*r.epc.sum/float64(r.epc.n), 'f', 1, 64)
	return []run.Condition{{Name: condition.EPCOthers, Value: value, Kind: string(condition.Identity)}}
}

// epcShares is the sum of the shares of all repetitions.
type epcShares struct {
	sum float64
	n   int
}

func (e *epcShares) add(s *steadiness) {
	if share, known := s.EPCOthers(); known {
		e.sum, e.n = e.sum+share, e.n+1
	}
}

// steadiness samples the state of the machine next to a sample of the agent.
type steadiness struct {
	condition.Steadiness
	others map[string]bool // workloads whose use of the enclave page cache has been that of others
}

// add adds a sample. If a workload is recorded that was not before, some of what others used has been its own. A workload without an
// enclave, such as each program that a script starts, changes nothing.
func (s *steadiness) add(a activity, epc epcOf, chosen map[string]bool) {
	for w := range s.others {
		if chosen[w] {
			s.RestartEPC()
			s.others = nil
			break
		}
	}
	for w := range epc.using {
		if !chosen[w] && len(s.others) < maxChosen {
			if s.others == nil {
				s.others = map[string]bool{}
			}
			s.others[w] = true
		}
	}
	one := condition.Take(condition.ThisHost(), a.at, time.Duration(a.cpu*float64(time.Second)))
	if epc.size > 0 && epc.known {
		one.EPC, one.EPCOthers = epc.size, max(0, epc.size-epc.free-epc.own)
	}
	s.Add(one)
}

// epcOf is the use of the enclave page cache in a sample, in bytes.
type epcOf struct {
	size, free, own float64
	known           bool            // whether free is
	using           map[string]bool // workloads that use it
}

func (e *epcOf) read(p point, chosen map[string]bool) {
	switch p.series.Name {
	case "sgx_epc_size_bytes":
		e.size += p.value
	case "sgx_epc_free_bytes":
		e.free, e.known = p.value, true
	case "sgx_workload_resident_bytes":
		if chosen[p.workload()] {
			e.own += p.value
		}
		if p.value > 0 {
			if e.using == nil {
				e.using = map[string]bool{}
			}
			e.using[p.workload()] = true
		}
	}
}

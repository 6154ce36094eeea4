// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
	"github.com/teescope/teescope/internal/run/outcome"
)

// The series that say in what a workload runs.
const (
	enclaveInfo  = "sgx_enclave_info"       // with the label debug, for each enclave
	enclavesNow  = "sgx_workload_enclaves"  // of a workload
	enclavesEver = enclavesCreated          // of the machine: the driver is observed
	workloadInfo = "teescope_workload_info" // with the label runtime
)

// enclaves says which enclaves a workload has had.
type enclaves struct{ production, debug, other bool }

// origin is what a run says about how its figures were obtained.
type origin struct {
	emulated bool                 // in the virtual SGX machine
	observed bool                 // the driver for enclaves is observed, so a workload without an enclave has none
	twin     bool                 // the user says that the program is the twin of one in an enclave
	direct   map[string]bool      // workloads that Gramine runs without an enclave
	enclaves map[string]*enclaves // by workload
}

func originOf(r *run.Run) origin {
	o := origin{direct: map[string]bool{}, enclaves: map[string]*enclaves{}}
	for _, c := range r.Meta.Conditions {
		o.emulated = o.emulated || c.Name == "sgx" && c.Value == condition.EmulatedSGX
		o.twin = o.twin || c.Name == run.Twin
	}
	for _, s := range r.Series {
		o.observed = o.observed || s.Name == enclavesEver
		w := s.Labels["workload"]
		had := slices.ContainsFunc(s.Values, func(v float64) bool { return !math.IsNaN(v) && v > 0 })
		switch {
		case !had:
		case s.Name == workloadInfo:
			o.direct[w] = o.direct[w] || s.Labels["runtime"] == string(teelabel.GramineDirect)
		case s.Name == enclaveInfo && s.Labels["debug"] == "true":
			o.of(w).debug = true
		case s.Name == enclaveInfo && s.Labels["debug"] == "false":
			o.of(w).production = true
		case s.Name == enclaveInfo, s.Name == enclavesNow:
			o.of(w).other = true
		}
	}
	return o
}

func (o origin) of(workload string) *enclaves {
	if o.enclaves[workload] == nil {
		o.enclaves[workload] = &enclaves{}
	}
	return o.enclaves[workload]
}

// how says how the figures of a series were obtained, if there are several ways.
func (o origin) how(s *run.Series) string {
	var said string
	switch source := s.Labels["source"]; {
	case hardware().MatchString(s.Name), strings.HasPrefix(s.Name, "teescope_llc_"), s.Name == runningRatio:
		said = "counter of the processor, " + o.counted(s.Labels["workload"])
	case s.Name == enclsSeries:
		said = "follows from the calls of the driver's functions"
	case source != "":
		said = "source " + source
	}
	if said != "" && o.emulated {
		said += ", in an emulated machine"
	}
	return said
}

// counted says what a counter of the processor has counted of a workload. The processor counts in a debug enclave only what
// runs in threads with TCS.FLAGS.DBGOPTIN (Intel SDM vol. 3D, 40.4).
func (o origin) counted(workload string) string {
	e := o.enclaves[workload]
	switch {
	case o.twin, e == nil && o.direct[workload]:
		return "of a twin outside the enclave"
	case e == nil && o.observed:
		return "of a program without an enclave"
	case e == nil || !e.production && !e.debug:
		return "which does not count inside production enclaves"
	case e.production && e.debug:
		return "outside of its production enclaves, and outside and inside of its debug enclaves"
	case e.debug:
		return "outside and inside of a debug enclave, as far as its threads opt in (DBGOPTIN)"
	}
	return "outside of the enclave: it does not count inside production enclaves"
}

// howOutcome says how an outcome was measured, if the benchmark itself did not report it.
func howOutcome(o run.Outcome) string {
	if o.From == outcome.Callgrind {
		return "callgrind, which simulates the processor and runs outside of an enclave"
	}
	return ""
}

// how says how the figures of a metric were obtained: of all its series that were seen.
func (x *Record) how(s *run.Series) string {
	return joinHow(x.Metrics[shortName(s.Name)].How, x.origin.how(s))
}

// joinHow joins ways, each once.
func joinHow(before, more string) string {
	var ways []string
	for way := range strings.SplitSeq(before+"; "+more, "; ") {
		if way != "" && !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	return strings.Join(ways, "; ")
}

// howOf says how a metric was obtained in each group: once if all groups have it in the same way.
func howOf(all []sample, id string) string {
	var ways, names []string
	for _, s := range all {
		if m, there := s.known[id]; there {
			ways, names = append(ways, m.How), append(names, s.info.Name)
		}
	}
	if len(slices.Compact(slices.Clone(ways))) <= 1 {
		return strings.Join(ways[:min(1, len(ways))], "")
	}
	for i, way := range ways {
		if way == "" {
			way = "not stated"
		}
		ways[i] = names[i] + ": " + way
	}
	return strings.Join(ways, "; ")
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
)

const (
	// sspins and espins are SCONE's defaults. Documented: the output with SCONE_VERSION=1. What SCONE_ESPINS does is not
	// documented; that it is the polling of threads in the enclave is assumed.
	sspins, espins = 100, 10_000
	// manySpins is how often the default is a lot. Proposed.
	manySpins = 100
)

// sconeSource names SCONE's documentation as a source.
const sconeSource = "https://sconedocs.github.io/SCONE_ENV/"

// scone returns SCONE's settings, or nil for another runtime.
func scone(f *advise.Facts) *read.SCONE {
	if f.Config.Runtime != "SCONE" {
		return nil
	}
	return &f.Config.SCONE
}

func sconeQueues() advise.Rule {
	return advise.Rule{
		ID: "scone-queues", Title: "SCONE has more queues or threads outside than there are CPUs", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config, advise.CPUs}},
		Signal: "`SCONE_QUEUES`, and Q and the lines s of SCONE's configuration file, against online CPUs", Threshold: "more than CPUs",
		Source: "proposed; " + sconeSource + ": threads in the enclave and outside serve each queue; one thread in the enclave for each core, and one outside for each of them", Advice: "at most as many queues as CPUs",
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			cpus, ok := f.Machine.CPUs()
			if s == nil || !ok || max(s.Queues, s.Outside) <= uint64(cpus) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("Threads in the enclave and outside poll the queues of system calls, and there are %d CPUs. With more of them than CPUs, threads that poll take the CPUs from threads that work.", cpus))
			a.Seen = []advise.Seen{seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online"))}
			if s.Queues > 0 {
				a.Seen = append(a.Seen, seen("SCONE_QUEUES", float64(s.Queues), "1", f.ConfigFile))
			}
			if s.Outside > 0 {
				a.Seen = append(a.Seen, seen("threads outside", float64(s.Outside), "1", f.ConfigFile))
			}
			a.Do = []string{fmt.Sprintf("set SCONE_QUEUES=%d, with one thread outside for each queue, or less if other programs need the CPUs", cpus), "measure it: teescope record --matrix"}
			return a
		},
	}
}

func sconeSlots() advise.Rule {
	return advise.Rule{
		ID: "scone-slots", Title: "SCONE has no slot for the system call of each thread", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config, advise.Scaling}},
		Signal: "`SCONE_SLOTS` against the largest number of threads of --scaling", Threshold: "no more slots than threads",
		Source: sconeSource + ": larger than the maximum number of threads of the application (lthreads)", Advice: "more slots than threads",
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			most := f.Scaling[len(f.Scaling)-1].Threads // they ascend
			if s == nil || s.Slots == 0 || float64(s.Slots) > most {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "The queues of system calls must have more slots than the application has threads.")
			a.Seen = []advise.Seen{seen("SCONE_SLOTS", float64(s.Slots), "1", f.ConfigFile), seen("threads", most, "1", f.ScalingFile)}
			a.Do = []string{fmt.Sprintf("set SCONE_SLOTS to more than %.0f", most)}
			return a
		},
	}
}

func sconeSpins() advise.Rule {
	return advise.Rule{
		ID: "scone-spins", Title: "SCONE's threads poll for long before they sleep", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config}},
		Signal: "`SCONE_SSPINS` and `SCONE_ESPINS`", Threshold: "100 times the defaults of 100 and 10,000",
		Source: "proposed; " + sconeSource + ": a thread in the enclave without work pauses SCONE_SSPINS times before it sleeps. SCONE_ESPINS is printed there and not described: that it is polling too is not verified", Advice: "fewer spins",
		NotWhen: []string{"each thread has a CPU of its own, and latency matters more than CPU time"},
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			if s == nil {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "A thread that polls takes a CPU although it has nothing to do. Its CPU time looks like work.")
			for _, one := range []struct {
				name          string
				value, normal uint64
			}{{"SCONE_SSPINS", s.SSpins, sspins}, {"SCONE_ESPINS", s.ESpins, espins}} {
				if one.value >= manySpins*one.normal {
					a.Seen = append(a.Seen, seen(one.name, float64(one.value), "1", f.ConfigFile))
					a.Do = append(a.Do, fmt.Sprintf("try %s=%d, the default, and compare (teescope compare)", one.name, one.normal))
				}
			}
			if len(a.Seen) == 0 {
				return nil
			}
			return a
		},
	}
}

func sconeSimulation() advise.Rule {
	return advise.Rule{
		ID: "scone-simulation", Title: "SCONE runs without an enclave", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config}},
		Signal: "`SCONE_MODE`", Threshold: "sim", Source: sconeSource + ": sim is the simulation", Advice: "measure with SCONE_MODE=hw",
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			if s == nil || !s.Simulated {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The simulation uses no enclave. It protects nothing, and its figures have none of the costs of SGX.")
			a.Seen = []advise.Seen{{What: "SCONE_MODE", Text: "sim", Source: f.ConfigFile}}
			a.Do = []string{"set SCONE_MODE=hw to protect the program and to measure it"}
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

const (
	// leastThreads is the least number of thread slots without EDMM. Documented: main, IPC, Async and one TLS handshake
	// (manifest syntax, Number of threads).
	leastThreads = 4
	// exitlessRisk says why Exitless is not for production.
	exitlessRisk = "insecure: not for production. The option reads and writes untrusted memory in a way that CVE-2022-21233 (INTEL-SA-00657) and CVE-2022-21166 (INTEL-SA-00615) concern; each thread outside also takes a CPU"
)

// rpc returns the number of threads outside. Known is false if a template hides it.
func rpc(m *manifest.Manifest) (n int64, v manifest.Value, known bool) {
	v = m.Get(keyRPC)
	if !v.Set {
		return 0, v, true
	}
	n, known = v.Int()
	return n, v, known && n >= 0
}

// hasNoRPC reports whether the manifest has no threads outside for certain.
func hasNoRPC(f *advise.Facts) bool {
	n, _, known := rpc(f.Manifest)
	return known && n == 0
}

func exitless() advise.Rule {
	return advise.Rule{
		ID: judged.Exitless, Title: "threads outside could make the system calls", Section: sectionExitless, Analyze: judged.Exitless, After: "ocalls",
		Needs:     [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Stats, advise.CPUTime, advise.CPUs}},
		Signal:    "the signal of `ocalls` with `sgx.insecure__rpc_thread_num` 0, at most 2 busy cores, and as many others; a finding of `exitless`",
		Threshold: "those of `ocall-bound` and `exitless`", Source: guide + ": Redis 43,010 to 68,119 requests/s; only for single-threaded applications or for latency",
		Advice:  "Exitless, with as many threads outside as thread slots",
		NotWhen: []string{"the enclave is for production", "other programs need the CPUs", "the calls block for long"},
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			if !known || n > 0 {
				return nil
			}
			var a *advise.Advice
			if found := f.Finding(judged.Exitless); found != nil {
				a = fromFinding(f, found)
			} else if cpus, ok := f.Machine.CPUs(); ok && f.Has(advise.CPUTime) && f.Busy() <= judged.ExitlessFewBusy && float64(cpus) >= 2*max(f.Busy(), 1) {
				if a = manyExits(f); a != nil {
					a.Seen = append(a.Seen, seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online")))
					a.Saving.Assumptions = append(a.Saving.Assumptions, "the CPU time is that of the threads in the enclave: each thread outside takes an idle CPU")
				}
			}
			if a == nil {
				return nil
			}
			a.Analyze, a.Insecure, a.Risk = judged.Exitless, true, exitlessRisk
			a.Seen = append(a.Seen, setting(f.Manifest, v, "0"))
			a.Do = []string{"only after the advice about the exits themselves: as many threads outside as thread slots", "pin enclave threads and threads outside to different CPUs (taskset, isolcpus)"}
			if slots, ok := threads(f.Manifest); ok && slots > 1 {
				a.Changes = set(keyRPC, strconv.FormatInt(slots, 10))
			}
			return a
		},
	}
}

func exitlessOff() advise.Rule {
	return advise.Rule{
		ID: "exitless-off", Title: "threads outside cost more than they save", Section: sectionExitless, Analyze: judged.Exitless,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings}},
		Signal: "a finding of `exitless` with `sgx.insecure__rpc_thread_num` above 0", Threshold: "that of `exitless`", Source: guide + ": threads outside burn CPU cycles",
		Advice: "turn Exitless off",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			found := f.Finding(judged.Exitless)
			if found == nil || !known || n == 0 {
				return nil
			}
			a := fromFinding(f, found)
			a.Seen = append(a.Seen, setting(f.Manifest, v, "0"))
			a.Do = slices.Clone(found.Advice)
			a.Changes = set(keyRPC, "0")
			return a
		},
	}
}

func exitlessCPUs() advise.Rule {
	return advise.Rule{
		ID: "exitless-cpus", Title: "threads outside occupy every CPU", Section: sectionExitless, Analyze: judged.Exitless,
		Needs:  [][]advise.Input{{advise.Manifest, advise.CPUs}},
		Signal: "`sgx.insecure__rpc_thread_num` against online CPUs", Threshold: "at least as many threads as CPUs", Source: guide + ": each thread outside occupies a core",
		Advice: "fewer threads outside, or none",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			cpus, ok := f.Machine.CPUs()
			if !known || !ok || n == 0 || n < int64(cpus) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%d threads outside wait actively for calls, and the machine has %d CPUs: they take the CPUs from the threads in the enclave. Whether they do shows an analysis of a run (rule exitless).", n, cpus))
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online"))}
			a.Do = []string{"turn Exitless off and compare (teescope compare)"}
			a.Changes, a.Choice = set(keyRPC, "0"), true
			return a
		},
	}
}

func exitlessThreads() advise.Rule {
	return advise.Rule{
		ID: "exitless-threads", Title: "the numbers of threads inside and outside differ", Section: sectionExitless, Analyze: "",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.insecure__rpc_thread_num` against `sgx.max_threads`", Threshold: "any difference", Source: guide + "; " + sectionSyntax + "Number of RPC threads: more waste CPU time, with fewer some threads starve",
		Advice: "the same number for both",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			slots, ok := threads(f.Manifest)
			if !known || !ok || n == 0 || n == slots || !notHidden(f.Manifest, keyEDMM) || isTrue(f.Manifest, keyEDMM) {
				return nil
			}
			why := "Threads outside beyond the number of enclave threads only burn CPU time."
			if n < slots {
				why = "Enclave threads without a thread outside wait until another call has ended, which takes long if it blocks."
			}
			a := configured(analysis.Info, analysis.Possible, why)
			slotsValue := f.Manifest.Get(keyThreads)
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), setting(f.Manifest, slotsValue, "4")}
			a.Do = []string{"give Exitless as many threads as the enclave uses at once"}
			a.Changes = set(keyRPC, strconv.FormatInt(slots, 10))
			a.Insecure, a.Risk = true, exitlessRisk
			return a
		},
	}
}

func exitlessProduction() advise.Rule {
	return advise.Rule{
		ID: "exitless-production", Title: "a production enclave uses an insecure option", Section: sectionExitless,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.insecure__rpc_thread_num` above 0 without `sgx.debug`", Threshold: "any", Source: sectionSyntax + "Number of RPC threads: CVE-2022-21233, CVE-2022-21166",
		Advice: "turn Exitless off",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			if !known || n == 0 || isTrue(f.Manifest, keyDebug) || !notHidden(f.Manifest, keyDebug) {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Gramine marks Exitless as insecure: it uses untrusted memory in a way that CVE-2022-21233 and CVE-2022-21166 concern. The enclave is no debug enclave.")
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), setting(f.Manifest, f.Manifest.Get(keyDebug), "false")}
			a.Do = []string{"turn Exitless off in production, and make fewer calls instead"}
			a.Changes, a.Choice = set(keyRPC, "0"), true
			a.Risk = "without Exitless each call leaves the enclave: " + cost.OCALL.Assumption()
			return a
		},
	}
}

func fewThreads() advise.Rule {
	return advise.Rule{
		ID: "few-threads", Title: "fewer thread slots than Gramine itself needs", Section: sectionSyntax + "Number of threads",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.max_threads` without EDMM", Threshold: "below 4", Source: sectionSyntax + "Number of threads: at least 4 even for single-threaded applications",
		Advice: "at least 4",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, known := threads(f.Manifest)
			if !known || n >= leastThreads || isTrue(f.Manifest, keyEDMM) || !notHidden(f.Manifest, keyEDMM) {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, "Beside the main thread, Gramine has a thread for IPC, one for timers, and one for each TLS handshake of a pipe. Without a slot for it, creating the thread fails.")
			a.Seen = []advise.Seen{setting(f.Manifest, f.Manifest.Get(keyThreads), "4")}
			a.Do = []string{"use 3 slots more than the application has threads"}
			a.Changes = set(keyThreads, strconv.Itoa(leastThreads))
			return a
		},
	}
}

func noThreadSlots() advise.Rule {
	return advise.Rule{
		ID: "no-thread-slots", Title: "threads could not start", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Log}},
		Signal: "log line \"no available TCS pages left for a new thread\"", Threshold: "any", Source: "Gramine, host_thread.c, which asks to increase sgx.max_threads",
		Advice: "twice as many thread slots",
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Log.NoTCS.Count == 0 {
				return nil
			}
			a := configured(analysis.High, analysis.Measured, "Each thread of the application and of Gramine needs a slot (TCS) of the enclave. The creation of a thread failed, because all were taken.")
			a.Seen = []advise.Seen{seen("threads that could not start", float64(f.Log.NoTCS.Count), "1", at(f.LogFile, f.Log.NoTCS.Line))}
			a.Do = []string{"raise sgx.max_threads until the message is gone; each slot costs some memory of the enclave"}
			slots := f.Log.TCSs
			if f.Manifest != nil {
				a.Seen = append(a.Seen, setting(f.Manifest, f.Manifest.Get(keyThreads), "4"))
				if n, known := threads(f.Manifest); known && slots > 0 && n > slots {
					a.Do = append(a.Do, fmt.Sprintf("the log is of a run with %d slots, and the manifest has %d now: run it again", slots, n))
					return a
				} else if known {
					slots = max(slots, n)
				}
			}
			if slots > 0 && slots < 1<<20 {
				a.Changes = set(keyThreads, strconv.FormatInt(2*slots, 10))
			}
			return a
		},
	}
}

func numa() advise.Rule {
	return advise.Rule{
		ID: "numa", Title: "the enclave may spread over NUMA nodes", Section: sectionMachine, Analyze: judged.NUMARemoteEPC,
		Needs:  [][]advise.Input{{advise.Nodes}, {advise.Findings}, {advise.Running}},
		Signal: "number of NUMA nodes that a running program may use, or that the machine has; a finding of `numa-remote-epc`", Threshold: "more than one node; that of `numa-remote-epc`", Source: guide + ", CPU topology",
		Advice: "numactl --cpunodebind=0 --membind=0",
		Judge: func(f *advise.Facts) *advise.Advice {
			do := []string{"start the program on one node: numactl --cpunodebind=0 --membind=0 gramine-sgx PROGRAM"}
			if found := f.Finding(judged.NUMARemoteEPC); found != nil {
				a := fromFinding(f, found)
				a.Do = do
				return a
			}
			nodes, known := f.Machine.Nodes()
			source := f.Machine.Source("numa_nodes")
			if f.Live != nil && f.Live.Nodes > 0 {
				nodes, known, source = f.Live.Nodes, true, running
			}
			if !known || nodes < 2 {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("The program may use CPUs of %d NUMA nodes. Threads on one node then read enclave memory of another, which takes longer.", nodes))
			a.Seen = []advise.Seen{seen("NUMA nodes", float64(nodes), "1", source)}
			a.Do = do
			return a
		},
	}
}

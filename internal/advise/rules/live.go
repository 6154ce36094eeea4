// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

const (
	keyFiles     = "sys.fds.limit"
	sectionFiles = "Limit on open file descriptors"
	// leastFiles is the default of sys.fds.limit. Documented (manifest syntax).
	leastFiles = 900
	// filesShare is the share of descriptors in use from which the limit is near. Proposed (rule 37 of the advisor).
	filesShare = 0.8
	// running names the processes of a running program as a source.
	running = "the running processes"
	// runtimeSGX is the runtime of a program in an enclave of Gramine (package teelabel).
	runtimeSGX = "gramine-sgx"
)

// slotsUsed returns the threads that need a slot of the enclave, of the process that has most. Threads of Exitless never enter,
// and gramine-direct has none of them.
func slotsUsed(f *advise.Facts) int64 {
	p := f.Live.Largest(func(p advise.Process) int { return p.Threads })
	used := int64(p.Threads)
	if n, _, known := rpc(f.Manifest); known && f.Live.Runtime == runtimeSGX {
		used -= n
	}
	return max(used, 0)
}

// slotsInUse returns advice if a running process has nearly as many threads as its enclave has slots. With EDMM slots are
// added when they are needed.
func slotsInUse(f *advise.Facts) *advise.Advice {
	if f.Manifest == nil || !f.Has(advise.Running) {
		return nil
	}
	slots, known := threads(f.Manifest)
	if _, _, ok := rpc(f.Manifest); !ok || !known || slots > 1<<20 || isTrue(f.Manifest, keyEDMM) || !notHidden(f.Manifest, keyEDMM) {
		return nil
	}
	used := slotsUsed(f)
	if float64(used) < judged.TCSNear*float64(slots) {
		return nil
	}
	a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("A process has %d threads that need a slot (TCS) of the enclave, and there are %d. Without a free slot, creating a thread fails.", used, slots))
	if used >= slots {
		a.Severity = analysis.Medium
	}
	a.Seen = []advise.Seen{seen("threads", float64(used), "1", running), setting(f.Manifest, f.Manifest.Get(keyThreads), "4")}
	a.Do = []string{"raise sgx.max_threads; each slot costs some memory of the enclave", "or start fewer threads"}
	a.Changes = set(keyThreads, fmt.Sprint(2*slots))
	return a
}

func openFiles() advise.Rule {
	return advise.Rule{
		ID: "open-files", Title: "most file descriptors are in use", Section: sectionSyntax + sectionFiles,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Running}},
		Signal: "open files, sockets and pipes of a running process against `" + keyFiles + "`", Threshold: "80 %",
		Source: "proposed; " + sectionSyntax + sectionFiles + ": 900 is the default, and RLIMIT_NOFILE of the application", Advice: "a higher limit",
		NotWhen: []string{"many files of the host are Gramine's own: the application sees those that it has opened"},
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keyFiles)
			limit, known := v.Int()
			if !v.Set {
				limit, known = leastFiles, true
			}
			open := f.Live.Largest(func(p advise.Process) int { return p.Files }).Files
			if !known || limit <= 0 || limit > 1<<30 || float64(open) < filesShare*float64(limit) {
				return nil
			}
			a := configured(analysis.Medium, analysis.Possible, fmt.Sprintf("A process has %d open files, sockets and pipes on the host, and the application may have %d. At the limit open, socket and accept fail.", open, limit))
			a.Seen = []advise.Seen{seen("open files", float64(open), "1", running), setting(f.Manifest, v, "900")}
			a.Do = []string{"raise the limit (Gramine 1.8 and later), or close what is not needed"}
			a.Changes = set(keyFiles, fmt.Sprint(2*limit))
			return a
		},
	}
}

func exitlessPinning() advise.Rule {
	return advise.Rule{
		ID: "exitless-pinning", Title: "threads outside run on the CPUs of enclave threads", Section: sectionExitless,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Running}},
		Signal: "the CPUs that each thread of a running program with Exitless may use", Threshold: "the same for all, and more than one",
		Source: guide + ": all enclave threads on one set of cores, all threads outside on another", Advice: "separate CPUs for both",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			if !known || n == 0 || f.Live.Runtime != runtimeSGX || f.Live.Pinned || f.Live.CPUs < 2 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "Threads outside poll for calls. Where the kernel puts one on the CPU of an enclave thread, it interrupts that thread, which leaves the enclave.")
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), seen("CPUs of every thread", float64(f.Live.CPUs), "1", running)}
			a.Do = []string{"put enclave threads on one set of CPUs and threads outside on another, such as the first and the second hyper-threads (taskset -p for each thread)"}
			return a
		},
	}
}

func sharedCores() advise.Rule {
	return advise.Rule{
		ID: "shared-cores", Title: "the program is pinned to hyper-threads of the same cores", Section: sectionMachine,
		Needs:  [][]advise.Input{{advise.Running}},
		Signal: "CPUs that a running program may use, the cores that have them, and cores without any", Threshold: "more CPUs than cores, although other cores are left",
		Source: "proposed; " + guide + ", Exitless feature: sets of cores", Advice: "one CPU of each core",
		NotWhen: []string{"other programs have the other cores", "another hyper-thread of the core may not be left to others: it can observe the enclave"},
		Judge: func(f *advise.Facts) *advise.Advice {
			l := f.Live
			if l.CPUs <= l.Cores || l.Spare < l.CPUs-l.Cores {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("The %d CPUs of the program are hyper-threads of %d cores, and share their units and caches. %d cores have no CPU of it.", l.CPUs, l.Cores, l.Spare))
			a.Seen = []advise.Seen{seen("CPUs", float64(l.CPUs), "1", running), seen("cores", float64(l.Cores), "1", running), seen("other cores", float64(l.Spare), "1", running)}
			a.Do = []string{"pin the program to one CPU of each core (taskset -c; /sys/devices/system/cpu/cpu*/topology/thread_siblings_list), and compare (teescope compare)"}
			return a
		},
	}
}

func staleManifest() advise.Rule {
	return advise.Rule{
		ID: "stale-manifest", Title: "the program does not run with this manifest", Section: sectionSyntax + "Enclave size",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Running}},
		Signal: "pages of the enclave of a running process against `sgx.enclave_size`", Threshold: "another size",
		Source: "Intel SDM, volume 3D: an enclave keeps the size that it was created with", Advice: "start it again, or name its manifest",
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keySize)
			bytes, known := v.Size()
			if !v.Set {
				bytes, known = 256<<20, notHidden(f.Manifest, keyEDMM) && !isTrue(f.Manifest, keyEDMM)
			}
			enclave := f.Live.Processes[0].Enclave
			if !known || enclave == 0 || enclave == bytes {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("The enclave has %s and the manifest says %s, so it is not the one that the program was started with. Other advice may be about settings that are not in use.", mib(enclave), mib(bytes)))
			a.Seen = []advise.Seen{seen("enclave", float64(enclave), "bytes", running), setting(f.Manifest, v, `"256M"`)}
			a.Do = []string{"start the program again with the changed manifest, or name the manifest that it runs with (--manifest)"}
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

const (
	// memoryWarn is the share of RAM and swap that an enclave may have. Proposed (rule 10 of the advisor); at the whole,
	// the kernel kills the program, which is documented (manifest syntax, Enclave size).
	memoryWarn = 0.80
	// arena is the memory that Glibc reserves for the allocations of a thread, in bytes. Documented (Glibc malloc tuning).
	arena = 64 << 20
	// arenaShare is the share of the enclave above which arenas do not fit "comfortably". Proposed (rule 16).
	arenaShare = 0.50
	// gramineThreads are threads of Gramine itself, which allocate nothing with Glibc: IPC, Async and a TLS handshake.
	// Documented (manifest syntax, Number of threads).
	gramineThreads = 3
	// longLoad is the least time that loading an enclave takes. Proposed (rule 12).
	longLoad = 5 * time.Second
	pageSize = 4096
)

// edmm completes advice to turn EDMM on, where the machine has it. EDMM takes Gramine 1.4, SGX2 and Linux 6.0.
func edmm(f *advise.Facts, a *advise.Advice) {
	can, known := f.Machine.EDMM()
	switch {
	case known && can:
		a.Do = append([]string{"turn EDMM on: memory is added when it is used (Gramine 1.4 and later)"}, a.Do...)
		a.Changes = set(keyEDMM, "true")
		a.Choice = true
		a.Risk = "adding a page to a running enclave takes exits: a program that allocates and frees often gets slower. Measure both (teescope compare)"
	case !known:
		a.Do = append(a.Do, "if the processor has SGX2 and the kernel is 6.0 or later, turn EDMM on (sgx.edmm_enable); --machine with the output of is-sgx-available tells")
	}
}

func enclaveOverMemory() advise.Rule {
	return advise.Rule{
		ID: "enclave-over-memory", Title: "the enclave is about as large as the memory", Section: sectionSyntax + "Enclave size",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Memory}},
		Signal: "`sgx.enclave_size` without EDMM against RAM and swap", Threshold: "80 %", Source: "proposed; " + sectionSyntax + "Enclave size: at 100 % the kernel kills the program",
		Advice: "a smaller enclave, or EDMM",
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			memory, ok := f.Machine.Memory()
			if !known || !ok || float64(bytes) < memoryWarn*float64(memory) {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, fmt.Sprintf("Without EDMM, Gramine commits all %s when the enclave is created. The machine has %s of RAM and swap. Every child process commits as much again.", mib(bytes), mib(memory)))
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`), seen("RAM and swap", float64(memory), "bytes", f.Machine.Source("memory_bytes"))}
			a.Do = []string{"reduce sgx.enclave_size to the largest power of two that the application needs"}
			if bytes < memory {
				a.Severity = analysis.Medium
			}
			edmm(f, a)
			return a
		},
	}
}

func enclaveSizePower() advise.Rule {
	return advise.Rule{
		ID: "enclave-size-power", Title: "the enclave's size is no power of two", Section: sectionSyntax + "Enclave size",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.enclave_size`", Threshold: "any other number", Source: "Gramine, host_main.c: \"Enclave size not a power of two (an SGX-imposed requirement)\"",
		Advice: "the next power of two",
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keySize)
			bytes, known := v.Size()
			if !known || bytes != 0 && bytes&(bytes-1) == 0 {
				return nil
			}
			a := configured(analysis.High, analysis.Likely, "Gramine refuses to start such an enclave.")
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`)}
			a.Do = []string{"use the next power of two"}
			if next := uint64(1) << bits.Len64(bytes); bytes >= 1<<20 && next <= 1<<44 {
				a.Changes = set(keySize, fmt.Sprintf(`"%dM"`, next>>20))
			}
			return a
		},
	}
}

func enclaveOverEPC() advise.Rule {
	return advise.Rule{
		ID: "enclave-over-epc", Title: "the enclave does not fit into the EPC", Section: sectionMachine, Analyze: judged.EPCThrashing,
		Needs:  [][]advise.Input{{advise.Manifest, advise.EPCSize}, {advise.Findings}},
		Signal: "`sgx.enclave_size` without EDMM against the EPC; a finding of `epc-thrashing` or `load-back-stalls`", Threshold: "100 %; those of these rules",
		Source: guide + ": pages beyond the EPC are evicted", Advice: "a smaller working set or enclave, EDMM, another machine",
		NotWhen: []string{"the application touches only a small part of the enclave: then only the start is slower"},
		Judge: func(f *advise.Facts) *advise.Advice {
			for _, name := range []string{judged.EPCThrashing, judged.LoadBackStalls} {
				if found := f.Finding(name); found != nil {
					a := fromFinding(f, found)
					a.Do = []string{"reduce the working set below the EPC: smaller caches and heaps, fewer processes", "or move to a machine with a larger EPC: servers from Ice Lake on have up to 1 TB"}
					return a
				}
			}
			epc, ok := f.Machine.EPC()
			if f.Manifest == nil || !ok {
				return nil
			}
			bytes, v, known := size(f.Manifest)
			if !known || bytes <= epc {
				return nil
			}
			pages := float64((bytes - epc) / pageSize)
			low, high := cost.Paging.CPU(pages, f.Machine.Clock())
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("Without EDMM all pages are added when the enclave is created, so at least %.0f of them are evicted before the application starts: %s to %s s, if %s. Those that it uses are loaded back one by one.",
				pages, analysis.Figure(low), analysis.Figure(high), cost.Paging.Assumption()))
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes"))}
			a.Do = []string{"reduce sgx.enclave_size if the application needs less", "record a run: teescope analyze tells whether the enclave pages while it works (epc-thrashing)"}
			edmm(f, a)
			return a
		},
	}
}

func slowLoad() advise.Rule {
	return advise.Rule{
		ID: "slow-load", Title: "loading the enclave takes long", Section: sectionSyntax + "EDMM", Analyze: judged.SlowStart,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Stats}, {advise.Manifest, advise.Findings}},
		Signal: "\"SGX enclave loading time\" without EDMM; a finding of `slow-start`", Threshold: "5 s; that of `slow-start`", Source: "proposed; EDMM loads 28 to 93 % faster (arXiv 2504.16251)",
		Advice: "EDMM, or a smaller enclave",
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			if !known {
				return nil
			}
			var a *advise.Advice
			if found := f.Finding(judged.SlowStart); found != nil {
				a = fromFinding(f, found)
			} else if f.Stats != nil && f.Stats.Longest > longLoad {
				a = configured(analysis.Info, analysis.Measured, fmt.Sprintf("Each of the %.0f pages of the enclave is added and measured before the application starts, and again for each child process.", float64(bytes/pageSize)))
				a.Seen = []advise.Seen{seen("longest loading time", f.Stats.Longest.Seconds(), "seconds", at(f.StatsFile, f.Stats.LoadLine))}
			}
			if a == nil {
				return nil
			}
			a.Seen = append(a.Seen, setting(f.Manifest, v, `"256M"`))
			a.Do = []string{"reduce sgx.enclave_size: the loading time grows with it"}
			edmm(f, a)
			return a
		},
	}
}

func preheat() advise.Rule {
	return advise.Rule{
		ID: "preheat", Title: "pages are first touched while the application works", Section: sectionOther, Analyze: judged.PageFaultStorm,
		Needs:  [][]advise.Input{{advise.Manifest, advise.Findings, advise.EPCSize}},
		Signal: "a finding of `page-fault-storm`, with an enclave that fits into the EPC and no EDMM", Threshold: "that of `page-fault-storm`", Source: guide,
		Advice: "sgx.preheat_enclave = true", NotWhen: []string{"the faults are of files that the host reads, not of enclave memory"},
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.PageFaultStorm)
			bytes, v, known := size(f.Manifest)
			epc, ok := f.Machine.EPC()
			if found == nil || !known || !ok || bytes > epc || isTrue(f.Manifest, keyPreheat) || !notHidden(f.Manifest, keyPreheat) {
				return nil
			}
			a := fromFinding(f, found)
			a.Seen = append(a.Seen, setting(f.Manifest, v, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes")))
			a.Do = []string{"fault all pages in before the application starts"}
			a.Changes, a.Choice, a.Risk = set(keyPreheat, "true"), true, "the start takes longer, by a page fault for each page of the heap"
			return a
		},
	}
}

func preheatInvalid() advise.Rule {
	return advise.Rule{
		ID: "preheat-invalid", Title: "preheating cannot work here", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`sgx.preheat_enclave` with EDMM, or with an enclave larger than the EPC", Threshold: "any", Source: sectionSyntax + "Pre-heating enclave: invalid with EDMM, and only for an enclave that fits into the EPC",
		Advice: "turn preheating off",
		Judge: func(f *advise.Facts) *advise.Advice {
			v := f.Manifest.Get(keyPreheat)
			if on, known := v.Bool(); !on || !known {
				return nil
			}
			bytes, sizeValue, known := size(f.Manifest)
			epc, ok := f.Machine.EPC()
			var a *advise.Advice
			switch {
			case isTrue(f.Manifest, keyEDMM):
				a = configured(analysis.High, analysis.Likely, "With EDMM there are no heap pages to fault in. Gramine's documentation calls the combination invalid.")
				a.Seen = []advise.Seen{setting(f.Manifest, v, "false"), setting(f.Manifest, f.Manifest.Get(keyEDMM), "false")}
			case known && ok && bytes > epc:
				pages := float64((bytes - epc) / pageSize)
				low, high := cost.Paging.CPU(pages, f.Machine.Clock())
				a = configured(analysis.Low, analysis.Likely, fmt.Sprintf("The enclave is larger than the EPC. Touching all its pages evicts at least %.0f of them, which takes %s to %s s of the start, if %s.", pages, analysis.Figure(low), analysis.Figure(high), cost.Paging.Assumption()))
				a.Seen = []advise.Seen{setting(f.Manifest, v, "false"), setting(f.Manifest, sizeValue, `"256M"`), seen("EPC", float64(epc), "bytes", f.Machine.Source("epc_bytes"))}
			default:
				return nil
			}
			a.Do = []string{"turn preheating off"}
			a.Changes = set(keyPreheat, "false")
			return a
		},
	}
}

func mallocArenas() advise.Rule {
	return advise.Rule{
		ID: "malloc-arenas", Title: "Glibc's arenas may fill the enclave", Section: sectionMalloc,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "64 MiB for each thread slot, or for each thread of a running process, without Gramine's three, against `sgx.enclave_size` without EDMM; `MALLOC_ARENA_MAX` not set", Threshold: "over 50 %",
		Source: "proposed; " + guide + ", Glibc malloc tuning: it must fit comfortably", Advice: "MALLOC_ARENA_MAX = 1, or a larger enclave",
		NotWhen: []string{"the application runs fewer threads than sgx.max_threads allows", "it uses another allocator than Glibc's, or musl"},
		Judge: func(f *advise.Facts) *advise.Advice {
			bytes, v, known := size(f.Manifest)
			slots, ok := threads(f.Manifest)
			if !known || !ok || slots > 1<<20 || f.Manifest.Env("MALLOC_ARENA_MAX").Set || isTrue(f.Manifest, "loader.insecure__use_host_env") {
				return nil
			}
			count, from := slots, "computed from both"
			if f.Has(advise.Running) {
				count, from = slotsUsed(f), running
			}
			most := max(count-gramineThreads, 1)
			need := uint64(most) * arena
			if float64(need) <= arenaShare*float64(bytes) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("Glibc reserves 64 MiB when a thread first calls malloc: %s for up to %d threads, of the enclave's %s. When that fails, each malloc tries again with system calls, and takes a whole page.", mib(need), most, mib(bytes)))
			a.Seen = []advise.Seen{setting(f.Manifest, v, `"256M"`), setting(f.Manifest, f.Manifest.Get(keyThreads), "4"), seen("memory of arenas", float64(need), "bytes", from)}
			a.Do = []string{"share one arena among all threads", "or enlarge sgx.enclave_size: faster if threads allocate at once, but each process takes that much"}
			a.Changes, a.Choice, a.Risk = set("loader.env.MALLOC_ARENA_MAX", `"1"`), true, "threads that allocate at the same time wait for each other"
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

const (
	// arena is the memory that Glibc reserves for the allocations of a thread, in bytes. Documented (Glibc malloc tuning).
	arena = 64 << 20
	// arenaShare is the share of the enclave above which arenas do not fit "comfortably". Proposed.
	arenaShare = 0.50
	// gramineThreads are threads of Gramine itself, which allocate nothing with Glibc: IPC, Async and a TLS handshake.
	// Documented (manifest syntax, Number of threads).
	gramineThreads = 3
)

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
			a.Do = []string{"share one arena among all threads"}
			if epc, ok := f.Machine.EPC(); !ok || float64(need) <= arenaShare*float64(epc) {
				a.Do = append(a.Do, "or enlarge sgx.enclave_size: faster if threads allocate at once, but each process takes that much")
			}
			a.Changes, a.Choice, a.Risk = set("loader.env.MALLOC_ARENA_MAX", `"1"`), true, "threads that allocate at the same time wait for each other"
			return a
		},
	}
}

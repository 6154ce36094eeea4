// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

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
	a.Changes = moreSlots(f.Manifest, slots)
	return a
}

// moreSlots sets twice as many thread slots, or as many as Gramine accepts. It returns nil if there are as many already.
func moreSlots(m *manifest.Manifest, slots int64) []manifest.Change {
	most := int64(mostThreads)
	if m != nil && !hasNoRPC(m) {
		most = mostQueued
	}
	if slots < 1 || slots >= most {
		return nil
	}
	return set(keyThreads, strconv.FormatInt(min(2*slots, most), 10))
}

func threadSlots() advise.Rule {
	return advise.Rule{
		ID: "thread-slots", Title: "most thread slots are in use", Section: sectionOther, Analyze: judged.ThreadsOverCapacity,
		Needs:  [][]advise.Input{{advise.Findings}, {advise.Manifest, advise.Running}},
		Signal: "a finding of `threads-over-capacity`; threads of a running process, without those of Exitless, against `sgx.max_threads` without EDMM", Threshold: "the threshold of `threads-over-capacity`: 80 %",
		Source: "proposed; " + guide + ": raise the number if Gramine complains", Advice: "more thread slots",
		Judge: func(f *advise.Facts) *advise.Advice {
			found := f.Finding(judged.ThreadsOverCapacity)
			if found == nil {
				return slotsInUse(f)
			}
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			if f.Config != nil && f.Config.Threads > 0 {
				a.Seen = append(a.Seen, seen(f.Config.Runtime+", threads that may run", float64(f.Config.Threads), "1", f.ConfigFile))
			}
			if f.Manifest == nil {
				return a
			}
			a.Seen = append(a.Seen, setting(f.Manifest, f.Manifest.Get(keyThreads), "4"))
			if n, known := threads(f.Manifest); known {
				a.Changes = moreSlots(f.Manifest, n)
			}
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

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
			a.Changes = moreSlots(f.Manifest, slots)
			return a
		},
	}
}

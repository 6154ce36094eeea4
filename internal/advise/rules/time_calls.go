// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func timeCalls() advise.Rule {
	return advise.Rule{
		ID: "time-calls", Title: "reading the time leaves the enclave", Section: sectionOCALLs, Analyze: judged.NeedlessSyscalls,
		Needs:  [][]advise.Input{{advise.Strace}},
		Signal: "share of gettimeofday and clock_gettime among the host's system calls", Threshold: "5 %", Source: "proposed",
		Advice: "a processor with RDTSC in enclaves, fewer calls",
		Judge: func(f *advise.Facts) *advise.Advice {
			share, top := f.Calls.Share(clocks()...)
			if share < timeShare {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the system calls on the host read the time. On processors before Ice Lake, RDTSC is forbidden in enclaves, and each reading is an OCALL.", 100*share))
			a.Seen = []advise.Seen{seen("share of calls for the time", share, "ratio", at(f.CallsFile, top.Line)), seen(top.Name, float64(top.Calls), "1", at(f.CallsFile, top.Line))}
			a.Do = []string{"move to a processor that allows RDTSC in enclaves (Ice Lake servers and later)", "read the time less often: cache it for each request or each iteration of the event loop"}
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

// perRate bounds each query for a rate.
const perRate = 10 * time.Second

// Rates returns the exits, the thread starts and the CPU time of a workload in the window of an analysis, or nil. Without a name there must be one
// workload only, and always one machine.
func Rates(ctx context.Context, r engine.Result, workload, of string) *advise.Rates {
	sources := r.Sources()
	if len(sources) != 1 {
		return nil
	}
	asker := query.NewAsker(ctx, sources[0], perRate)
	name := ""
	if workload != "" {
		name = "workload=" + strconv.Quote(workload)
	}
	// Of several methods that count the same exits, the one with the most counts.
	crossings := func(kind string) []query.Sample {
		return asker.Instant(fmt.Sprintf(`max by (workload, instance) (sum by (workload, instance, source) (rate(teescope_enclave_transitions_total{kind="%s",%s}[%s])))`, kind, name, query.Duration(r.Window)), r.At)
	}
	sums := func(metric string) []query.Sample {
		return asker.Instant(fmt.Sprintf(`sum by (workload, instance) (rate(%s{%s}[%s]))`, metric, name, query.Duration(r.Window)), r.At)
	}
	exits := crossings("eexit")
	if len(exits) != 1 {
		return nil
	}
	same := func(all []query.Sample) *float64 {
		for _, s := range all {
			if s.Labels["workload"] == exits[0].Labels["workload"] && s.Labels["instance"] == exits[0].Labels["instance"] {
				return &s.Value
			}
		}
		return nil
	}
	rates := &advise.Rates{Exits: exits[0].Value, AEXs: same(crossings("aex")), Starts: same(sums("teescope_thread_starts_total")), Source: of}
	if cpu := same(sums("teescope_cpu_seconds_total")); cpu != nil {
		rates.CPU = *cpu
	}
	return rates
}

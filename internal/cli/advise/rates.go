// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	judged "github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/lib/text"
)

// maxReason bounds the error of a query in a warning, in bytes.
const maxReason = 300

// perRate bounds each query for a rate.
const perRate = 10 * time.Second

// Of is what counts are looked for: of a workload, on a machine. Without a name it is the only one that has them.
type Of struct {
	Workload, Machine string
	Source            string // of the counts
}

// asker returns the function that queries the machine of an analysis, or nil if it is not known which of several that is.
func (o Of) asker(ctx context.Context, r engine.Result) *query.Asker {
	machines := r.Machines
	if len(machines) > 1 {
		machines = slices.DeleteFunc(slices.Clone(machines), func(m engine.Machine) bool { return o.Machine == "" || m.Name != o.Machine })
	}
	if len(machines) != 1 {
		return nil
	}
	return query.NewAsker(ctx, machines[0].Source, perRate)
}

// matcher selects the series of a workload, or of all without a name.
func (o Of) matcher() string {
	if o.Workload == "" {
		return ""
	}
	return "workload=" + strconv.Quote(o.Workload)
}

// Rates returns the exits, the starts of threads and processes, and the CPU time of a workload in the window of an analysis, or nil. Without a name there must be one
// workload only, and one machine.
func Rates(ctx context.Context, r engine.Result, of Of) *advise.Rates {
	asker := of.asker(ctx, r)
	if asker == nil {
		return nil
	}
	name := of.matcher()
	// If several methods count the same exits, the one with the most counts.
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
	rates := &advise.Rates{Exits: exits[0].Value, AEXs: same(crossings("aex")), Starts: same(sums("teescope_thread_starts_total")), Forks: same(sums("teescope_forks_total")), Source: of.Source}
	if cpu := same(sums("teescope_cpu_seconds_total")); cpu != nil {
		rates.CPU = *cpu
	}
	return rates
}

// Locks returns the calls of futex of a workload and the time in them in the window of an analysis, or nil if an agent has not measured
// it. There must be one workload and one machine only.
func Locks(ctx context.Context, r engine.Result, of Of) *advise.Locks {
	asker := of.asker(ctx, r)
	if asker == nil {
		return nil
	}
	sum := func(selector string) []query.Sample {
		return asker.Instant(fmt.Sprintf(`sum by (workload, instance) (rate(%s,%s}[%s]))`, selector, of.matcher(), query.Duration(r.Window)), r.At)
	}
	return locksOf(
		sum(`teescope_syscalls_total{syscall="futex"`), sum(`teescope_syscall_seconds_total{syscall="futex"`), sum(`teescope_syscall_seconds_total{workload!=""`), of.Source,
	)
}

// locksOf returns nil unless each figure is known of one workload.
func locksOf(calls, futex, all []query.Sample, of string) *advise.Locks {
	if len(calls) != 1 || len(futex) != 1 || len(all) != 1 || !(all[0].Value > 0) {
		return nil
	}
	return &advise.Locks{Calls: calls[0].Value, Futex: futex[0].Value, All: all[0].Value, Source: of}
}

const (
	// leastStep is the shortest step in which bursts are looked for, and steps is the number of them in a long window.
	leastStep, steps = 15 * time.Second, 20
	// mostBursts is the longest window in which bursts are looked for.
	mostBursts = 24 * time.Hour
)

// Bursts returns the starts of threads of a workload with the sockets that were made in the same seconds, or nil if an agent has not
// counted both. There must be one workload and one machine only.
func Bursts(ctx context.Context, r engine.Result, of Of) *advise.Bursts {
	asker := of.asker(ctx, r)
	if asker == nil || r.Window < 2*leastStep || r.Window > mostBursts {
		return nil
	}
	return bursts(asker, r.Window, r.At, of)
}

func bursts(asker *query.Asker, window time.Duration, at time.Time, of Of) *advise.Bursts {
	name := of.matcher()
	step := max(leastStep, (window / steps).Truncate(time.Second))
	var owner map[string]string
	counted := func(selector string) (byTime map[int64]float64) {
		all := asker.Range(fmt.Sprintf(`sum by (workload, instance) (rate(%s[%s]))`, selector, query.Duration(step)), at.Add(step-window), at, step)
		if len(all) != 1 || owner != nil && !maps.Equal(owner, all[0].Labels) {
			return nil // the sockets of a workload are not those of the threads of another
		}
		owner = all[0].Labels
		byTime = make(map[int64]float64)
		for _, p := range all[0].Points {
			byTime[p.Time.UnixMilli()] = p.Value
		}
		return byTime
	}
	return joined(
		counted(fmt.Sprintf(`teescope_thread_starts_total{workload!="",%s}`, name)), counted(fmt.Sprintf(`teescope_syscalls_total{syscall="socket",%s}`, name)),
		counted(fmt.Sprintf(`teescope_syscalls_total{syscall="bind",%s}`, name)), step, of.Source,
	)
}

// joined joins rates by their time. It returns nil without starts or without sockets. The busiest step is one of those whose threads
// make pipes, if there is one: the time of pipes is computed from it.
func joined(starts, sockets, binds map[int64]float64, step time.Duration, of string) *advise.Bursts {
	b := &advise.Bursts{Step: step.Seconds(), Source: of}
	for _, at := range slices.Sorted(maps.Keys(starts)) {
		n := starts[at]
		made, known := sockets[at]
		bound, both := binds[at]
		if !known || !both {
			continue
		}
		b.Steps++
		first := b.Steps == 1
		if n >= judged.ChurnStarts {
			b.Many++
		}
		pipes := n >= judged.ChurnStarts && made >= judged.HandshakeSockets*n && bound >= judged.HandshakeBinds*n
		if pipes {
			b.Joined++
			first = b.Joined == 1
		}
		if first || n > b.Starts && (pipes || b.Joined == 0) {
			b.Starts, b.Sockets, b.Binds = n, made, bound
		}
	}
	if b.Steps == 0 {
		return nil
	}
	return b
}

// Unanswered says which rules of the analysis did not judge because a query failed. If these rules give no advice,
// their causes may still exist.
func Unanswered(all []query.Problem) []string {
	var rules []string
	first := ""
	for _, p := range all {
		if p.Kind != query.Failed {
			continue
		}
		if first == "" {
			first = p.Error
		}
		for _, name := range p.Rules {
			if !slices.Contains(rules, name) {
				rules = append(rules, name)
			}
		}
	}
	if first == "" {
		return nil
	}
	which := "any"
	if len(rules) > 0 {
		slices.Sort(rules)
		which = strings.Join(rules, ", ")
	}
	return []string{fmt.Sprintf("queries failed, so what these rules of teescope analyze find is not known: %s: %s", which, text.Short(text.Terminal(first), maxReason))}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// edmmLeast and edmmMost are the part of the loading time that EDMM saves. Documented (arXiv 2504.16251).
const edmmLeast, edmmMost = 0.28, 0.93

// mostRPC is the largest sgx.insecure__rpc_thread_num: MAX_RPC_THREADS of Gramine (host_main.c).
const mostRPC = 256

// whatIf matches a setting whose effect can be asked for. Neither part needs quotes in a shell.
var whatIf = lazy.Regexp(`^([a-z0-9_]+(?:\.[a-z0-9_]+)+)=([0-9A-Za-z]{1,20})$`)

// Questions are the keys whose effect [WhatIf] estimates.
func Questions() []string { return []string{keyEDMM, keySize, keyRPC} }

// WhatIf estimates the effect of one setting, KEY=VALUE, from what was measured. Without the measurements that an estimate
// needs, it has no effects and says what it needs.
func WhatIf(f *advise.Facts, question string) (advise.Estimate, error) {
	match := whatIf().FindStringSubmatch(question)
	if match == nil {
		return advise.Estimate{}, errors.New("write KEY=VALUE with a number, a size or a boolean, such as " + keyRPC + "=8")
	}
	e := advise.Estimate{Key: match[1], Value: match[2]}
	var err error
	switch {
	case f.Manifest == nil:
		return e, errors.New("the current setting is in the manifest: name it with --manifest")
	case slices.Contains(Questions(), e.Key) && f.Gramine.Before(manifest.Introduced(e.Key)):
		e.Note = fmt.Sprintf("Gramine %s (%s) does not know this key: it needs %s.", f.Gramine, f.Gramine.Source, manifest.Introduced(e.Key))
		return e, nil
	case e.Key == keyRPC:
		err = ifRPC(f, &e)
	case e.Key == keySize:
		err = ifSize(f, &e)
	case e.Key == keyEDMM:
		err = ifEDMM(f, &e)
	default:
		return e, fmt.Errorf("there is no estimate of %s: ask for one of %s, or measure it (teescope record --matrix)", e.Key, strings.Join(Questions(), ", "))
	}
	if err != nil {
		return e, err
	}
	if was, safe := strings.CutPrefix(e.Was, "="); safe && was != e.Value {
		e.Sweep = fmt.Sprintf("teescope record -o sweep --repeat 5 --matrix '%s=%s,%s' --setup './prepare {%s}' -- ./benchmark", e.Key, was, e.Value, e.Key)
	}
	e.Was = strings.TrimPrefix(e.Was, "=")
	return e, nil
}

// now returns what the manifest sets, or the default, with a mark in front if it needs no quotes in a shell.
func now(v manifest.Value, otherwise string) string {
	if !v.Set {
		return "=" + otherwise
	}
	if v.Unknown == "" && whatIf().MatchString("a.b="+v.Text) {
		return "=" + v.Text
	}
	return v.Text
}

// ifRPC estimates threads outside instead of none. OCALLs that threads outside make are no exits, so no measurement shows
// what turning them off does.
func ifRPC(f *advise.Facts, e *advise.Estimate) error {
	n, v, known := rpc(f.Manifest)
	wanted := manifest.Value{Set: true, Kind: manifest.Integer, Text: e.Value}
	m, ok := wanted.Int()
	if !ok || m < 0 {
		return fmt.Errorf("%s is not a number of threads", e.Value)
	}
	if m > mostRPC {
		return fmt.Errorf("%d is too many: Gramine refuses to start with more than %d threads outside", m, mostRPC)
	}
	if e.Was = now(v, "0"); !known {
		return fmt.Errorf("%s: a template hides the current value: name the rendered manifest", e.Key)
	}
	if m > 0 {
		e.Risk = exitlessRisk
	}
	if n == m {
		e.Note = "The setting already has this value, so nothing changes."
		return nil
	}
	if n > 0 {
		e.Note = "OCALLs of threads outside are not exits, so the stats of a run with Exitless do not show what they save. Measure both."
		return nil
	}
	measured, known := measuredExits(f)
	switch {
	case !known && f.Judged:
		e.Note = fmt.Sprintf("No exits of the workload were counted (%s): name the SGX stats of a run (%s) and their time (%s).", f.FindingsOf, advise.Stats, advise.Elapsed)
		return nil
	case !known:
		e.Note = "This needs the exits of a run: name its SGX stats (" + string(advise.Stats) + ") and their time (" + string(advise.Elapsed) + "), or what counted them (" + string(advise.Findings) + ")."
		return nil
	}
	if e.Seen = []advise.Seen{measured.seen, setting(f.Manifest, v, "0")}; measured.perSecond <= 0 {
		e.Note = "No OCALL was counted, so there is none that a thread outside could make."
		return nil
	}
	clock := f.Machine.Clock()
	low, high := cost.Saved(cost.OCALL, cost.Exitless, measured.perSecond, clock)
	used := measured.cores.Value
	if used > 0 {
		low, high = min(low, used), min(high, used)
	}
	most := float64(m)
	cpus, counted := f.Machine.CPUs()
	if counted {
		most = min(most, float64(cpus))
	}
	e.Effects = []advise.Effect{
		{What: "CPU time that the threads in the enclave no longer use", Low: low, High: high, Unit: "cores"},
		{What: "CPU time that the threads outside use: none while they sleep, one core each while they wait for calls", Low: 0, High: most, Unit: "cores"},
	}
	e.Assumptions = []string{cost.OCALL.Assumption(), cost.Exitless.Assumption(), clock.Assumption(), measured.assumption}
	least, assumed := crowded(float64(m), used, cpus, counted)
	if e.Assumptions = append(e.Assumptions, assumed...); used > 0 {
		g := estimate.Amdahl("", 0, high/used)
		e.Effects = append(e.Effects, advise.Effect{What: throughputSaid(least), Low: least, High: g.High, Unit: "ratio"})
		e.Seen = append(e.Seen, measured.cores)
	}
	if slots, ok := threads(f.Manifest); ok && m < slots {
		e.Assumptions = append(e.Assumptions, fmt.Sprintf("calls do not block for long: %d threads outside serve up to %d in the enclave, and a thread waits while all of them are in a call", m, slots))
	}
	return nil
}

// throughputSaid names the effect on throughput.
func throughputSaid(least float64) string {
	const best = "the highest if the CPU time of the enclave threads limits it"
	if least < 0 {
		return "change of throughput: a loss if threads outside take CPUs that the enclave threads need, " + best
	}
	return "more throughput: none if something else limits it, " + best
}

// crowded returns the least change of the throughput when n threads outside wait actively for calls, beside threads in the enclave that
// use some cores. With an idle CPU for each it is 0. Otherwise the kernel gives each thread an equal part of the CPUs, and the part of
// the enclave threads is what is lost at most. The assumptions say so, or what is not known.
func crowded(n, used float64, cpus int, counted bool) (least float64, assumed []string) {
	const idle = "there is an idle CPU for each thread outside that is busy"
	switch {
	case !counted:
		return 0, []string{idle + ": the number of CPUs is not known (" + string(advise.CPUs) + ")"}
	case n+max(used, 1) <= float64(cpus):
		return 0, []string{idle + ", and other programs leave it to them"}
	case used == 0:
		return 0, []string{fmt.Sprintf("%g threads outside and those in the enclave share %d CPUs: while all of them are busy, the program loses throughput. To estimate how much, teescope needs the CPU time of the program (%s)", n, cpus, advise.CPUTime)}
	}
	return min(0, float64(cpus)/(n+used)-1), []string{
		fmt.Sprintf("for the lowest throughput, all %g threads outside are busy, and share %d CPUs equally with enclave threads that now use %.3g cores", n, cpus, used),
		"the kernel does not preempt a thread outside within a call, which would make the loss larger",
	}
}

// counted are exits and CPU time of a program, with where they come from.
type counted struct {
	perSecond  float64
	seen       advise.Seen
	cores      advise.Seen // its value is 0 if that is not known
	assumption string
}

// measuredExits returns the exits of the SGX stats, or those that an agent counted.
func measuredExits(f *advise.Facts) (counted, bool) {
	switch {
	case f.Has(advise.Stats) && f.Stats.Processes > 0 && f.Has(advise.Elapsed):
		n, _, _ := exits(f)
		return counted{
			n, seen("OCALLs (EEXITs after the start)", n, "1/s", at(f.StatsFile, f.Stats.Line)),
			seen("CPU time of the program", f.Busy(), "cores", f.StatsFile+", perf stat"), fmt.Sprintf("%d exits of each process belong to its start", startExits),
		}, true
	case f.Rates != nil:
		return counted{
			f.Rates.Exits, seen("OCALLs (EEXITs)", f.Rates.Exits, "1/s", f.Rates.Source),
			seen("CPU time of the workload", f.Rates.CPU, "cores", f.Rates.Source), "the load stays as it was while it was measured",
		}, true
	}
	return counted{}, false
}

// ifSize estimates the loading time with another size. Only a part of it grows with the size.
func ifSize(f *advise.Facts, e *advise.Estimate) error {
	next, ok := manifest.ParseSize(e.Value)
	if !ok || next == 0 || next&(next-1) != 0 {
		return fmt.Errorf("%s is not a size of an enclave: use a power of two, such as 512M", e.Value)
	}
	bytes, v, known := size(f.Manifest)
	e.Was = now(v, "256M")
	if !known {
		e.Note = "With EDMM the size is only a limit, or a template hides the current value: there is nothing to estimate."
		return nil
	}
	if epc, ok := f.Machine.EPC(); ok && max(next, bytes) > epc {
		e.Note = fmt.Sprintf("One of the sizes does not fit into the EPC of %s. Loading then evicts pages, and no measurement shows how long that takes.", mib(epc))
		return nil
	}
	if next == bytes {
		e.Note = "The setting already has this value, so nothing changes."
		return nil
	}
	return ifLoading(f, e, setting(f.Manifest, v, `"256M"`), float64(next)/float64(bytes), 1, "the part of the loading time that grows with the size is not known: from none to all of it", "the enclave fits into the EPC with both sizes")
}

// ifEDMM estimates the loading time with EDMM.
func ifEDMM(f *advise.Facts, e *advise.Estimate) error {
	v := f.Manifest.Get(keyEDMM)
	if e.Was = now(v, "false"); e.Value != "true" || isTrue(f.Manifest, keyEDMM) || !notHidden(f.Manifest, keyEDMM) {
		return fmt.Errorf("only %s=true can be estimated, and only for a manifest that does not set it yet", keyEDMM)
	}
	if can, known := f.Machine.EDMM(); known && !can {
		e.Note = "This machine does not support EDMM, which needs SGX2 and Linux 6.0 or later."
		return nil
	}
	e.Risk = "adding a page to a running enclave takes exits: a program that allocates and frees often gets slower, by up to 58 % (arXiv 2504.16251)"
	return ifLoading(f, e, setting(f.Manifest, v, "false"), 1-edmmMost, 1-edmmLeast, "EDMM loads 28 to 93 % faster (arXiv 2504.16251)")
}

// ifLoading adds the loading time times each of two factors.
func ifLoading(f *advise.Facts, e *advise.Estimate, v advise.Seen, a, b float64, assumptions ...string) error {
	if !f.Has(advise.Stats) || f.Stats.Longest <= 0 {
		e.Note = "This needs the loading time of an enclave: Gramine prints it with sgx.enable_stats. Name the file with " + string(advise.Stats) + "."
		return nil
	}
	load := f.Stats.Longest.Seconds()
	e.Seen = []advise.Seen{seen("loading the enclave", load, "seconds", at(f.StatsFile, f.Stats.LoadLine)), v}
	e.Effects = []advise.Effect{{What: "loading the enclave would take", Low: load * min(a, b), High: load * max(a, b), Unit: "seconds"}}
	e.Assumptions = assumptions
	return nil
}

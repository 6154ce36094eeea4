// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/syscalls"
	"github.com/teescope/teescope/internal/run"
)

// Blame says what accounts for the difference in time per operation between two groups.
type Blame struct {
	From, To string // names of the groups
	// Unit is the unit of all figures: "s/op", or "s/repetition" if the operations are unknown.
	Unit   string
	Whole  Component // wall-clock time of the phase
	Views  []View
	Notes  []string
	Reason string // why there is no blame; empty if there is
}

// View divides a whole by one criterion. Its components and the rest add up to the whole.
type View struct {
	Name       string
	Whole      Component // the wall-clock time, or the CPU time of functions
	Components []Component
	Rest       Component // has no name if the components are all of the whole
}

// Parts returns the components and the rest.
func (v View) Parts() []Component {
	all := slices.Clone(v.Components)
	if v.Rest.Name != "" {
		all = append(all, v.Rest)
	}
	return all
}

// Component is a part of the time. The figures are means over repetitions, because medians do not add up.
type Component struct {
	Name   string
	Source string  // where the figure is from
	Before float64 // mean of the baseline
	After  float64
	// Difference is After - Before, with the exact interval of a shift at 95 %.
	Difference stat.Interval
	Share      float64 // of the whole difference; NaN if that is zero
	P          float64 // of the Mann-Whitney test, corrected for all components of the view
	Sure       bool    // whether P is at most Alpha
}

// mostCalls is the number of system calls or OCALLs with a line of their own.
const mostCalls = 8

// A source is a part of the time and the total that it is read from.
type source struct {
	name, from string
	total      string // ID of the total; several are separated by zero bytes
	missing    string // where the time is, and why, if it was not measured; empty if the view needs it
}

var states = []source{
	{"user CPU time", "teescope_cpu_seconds_total, mode user", "cpu_seconds{user}", ""},
	{"system CPU time", "teescope_cpu_seconds_total, mode system", "cpu_seconds{system}", ""},
	{"waiting for a CPU", "teescope_run_queue_wait_seconds_total", "run_queue_wait_seconds", "waiting for a CPU was not measured and is in the rest"},
}

// outside are what threads do outside of system calls beside running in user mode. No time is also in that of a call.
var outside = []source{
	{"loading evicted pages", "sgx_load_back_seconds_sum, of the whole machine", "sgx_load_back_seconds", absent},
	{
		"page faults", "CPU time, times the share in the profile, outside of system calls and of loading evicted pages", faultSeconds,
		"the time of page faults is in the rest: record measures it with --profile, where it may read the names of the kernel's functions",
	},
	{
		"waiting for pages of files", "teescope_io_wait_outside_calls_seconds_total", "io_wait_outside_calls_seconds",
		"waiting for the pages of files outside of system calls was not measured and is in the rest",
	},
	{
		"waiting for a CPU", "teescope_run_queue_wait_outside_calls_seconds_total", "run_queue_wait_outside_calls_seconds",
		"waiting for a CPU outside of system calls was not measured and is in the rest",
	},
}

// absent is why a time is not there: there was nothing to measure.
const absent = "-"

// blame computes what accounts for the difference between two groups.
func blame(before, after sample) Blame {
	b := Blame{From: before.info.Name, To: after.info.Name, Unit: "s/op"}
	if !counted(before) || !counted(after) {
		b.Unit = "s/repetition"
		b.Notes = append(b.Notes, "the number of operations is unknown: the times are those of a repetition, and compare only if each does the same work")
	}
	groups := [2]sample{before, after}
	if !timed(groups, "cpu_seconds") {
		b.Reason = "the runs have no CPU time of the watched workloads"
		return b
	}
	b.Whole = b.component(groups, Component{}, "time", "duration of the phase divided by the operations", func(r *repeat) float64 { return r.Seconds })
	b.view(groups, "what threads did", states, "waiting for devices and for others, such as clients, other processes and locks")
	if timed(groups, functionSeconds) {
		b.functions(groups)
	}
	if timed(groups, "syscall_seconds") {
		list := append(append([]source{states[0]}, outside...), parts(groups, "syscall_seconds", "teescope_syscall_seconds_total", "in ", syscalls.WaitsForOthers)...)
		b.view(groups, "what it went to", list, "interruptions, and waiting in epoll_wait, futex and the like")
	} else {
		b.Notes = append(b.Notes, "the runs have no time by system call: the agent measures it with --syscalls.time")
	}
	if timed(groups, "ocall_seconds") {
		b.view(groups, "OCALLs", parts(groups, "ocall_seconds", "teescope_ocall_seconds_sum", "OCALL ", nil),
			"inside the enclave, crossing its boundary, and outside of OCALLs")
	}
	return b
}

func counted(s sample) bool {
	return !slices.ContainsFunc(s.repeats, func(r repeat) bool { return !(r.operations > 0) })
}

// timed reports whether each repetition has a total.
func timed(groups [2]sample, total string) bool {
	for _, g := range groups {
		for _, r := range g.repeats {
			if _, there := r.Totals[total]; !there {
				return false
			}
		}
	}
	return true
}

// parts lists the parts of a total with the greatest difference, and the others together.
func parts(groups [2]sample, total, from, prefix string, without func(part string) bool) []source {
	mean := [2]map[string]float64{{}, {}}
	names := map[string]bool{}
	for i, g := range groups {
		for _, r := range g.repeats {
			for name, v := range r.Totals {
				if part, ok := strings.CutPrefix(name, total+"{"); ok && (without == nil || !without(strings.TrimSuffix(part, "}"))) {
					mean[i][name] += v / r.divisor() / float64(len(g.repeats))
					names[name] = true
				}
			}
		}
	}
	var list []source
	for name := range names {
		part := strings.TrimSuffix(strings.TrimPrefix(name, total+"{"), "}")
		list = append(list, source{prefix + part, from, name, ""})
	}
	slices.SortFunc(list, func(a, b source) int {
		return cmp.Or(cmp.Compare(math.Abs(mean[1][b.total]-mean[0][b.total]), math.Abs(mean[1][a.total]-mean[0][a.total])), cmp.Compare(a.name, b.name))
	})
	if len(list) > mostCalls {
		var others []string
		for _, s := range list[mostCalls:] {
			others = append(others, s.total)
		}
		list = append(list[:mostCalls], source{prefix + "others", from, strings.Join(others, "\x00"), ""})
	}
	return list
}

// divisor is the number of operations, or 1 if it is unknown.
func (r *repeat) divisor() float64 {
	if r.operations > 0 {
		return r.operations
	}
	return 1
}

// busy is the mean number of threads that ran or waited for a CPU, or did what a view lists if these were more, and at least 1.
// Times of threads are divided by it: several threads at once need less wall-clock time. So the rest of a view is never negative.
func (r *repeat) busy(listed []source) float64 {
	if r.Seconds <= 0 {
		return 1
	}
	return max(1, r.seconds(states)/r.Seconds, r.seconds(listed)/r.Seconds)
}

// seconds adds up the times of threads of sources.
func (r *repeat) seconds(of []source) float64 {
	sum := 0.0
	for _, s := range of {
		for id := range strings.SplitSeq(s.total, "\x00") {
			sum += r.Totals[id]
		}
	}
	return sum
}

// idling is how many times as many threads do what a view lists as run or wait for a CPU, from which a note says so.
const idling = 2

// view adds a view with a component for each source.
func (b *Blame) view(groups [2]sample, name string, all []source, rest string) {
	v := View{Name: name, Whole: b.Whole}
	var sources []source
	for _, s := range all {
		if s.missing == "" || timed(groups, s.total) {
			sources = append(sources, s)
		} else if s.missing != absent && !slices.Contains(b.Notes, s.missing) {
			b.Notes = append(b.Notes, s.missing)
		}
	}
	for _, s := range sources {
		v.Components = append(v.Components, b.component(groups, v.Whole, s.name, s.from, func(r *repeat) float64 { return r.seconds([]source{s}) / r.busy(sources) }))
	}
	v.Rest = b.component(groups, v.Whole, "rest", rest, func(r *repeat) float64 {
		left := r.Seconds - r.seconds(sources)/r.busy(sources)
		if math.Abs(left) < 1e-9*r.Seconds {
			return 0 // a rounding error
		}
		return left
	})
	for i := range groups {
		if slices.ContainsFunc(groups[i].repeats, func(r repeat) bool { return r.busy(sources) > idling*r.busy(nil) }) {
			b.Notes = append(b.Notes, fmt.Sprintf("%s: in %q, more threads are in the calls that are listed than run or wait for a CPU. Some may idle there, as in read, and make the other shares small", groups[i].info.Name, name))
		}
	}
	b.add(v)
}

// functions adds the view of the functions. It divides the CPU time, because a machine that needs more of it for the same work may
// take the same time.
func (b *Blame) functions(groups [2]sample) {
	of := func(s source) func(*repeat) float64 { return func(r *repeat) float64 { return r.seconds([]source{s}) } }
	whole := source{name: "CPU time", from: "teescope_cpu_seconds_total", total: functionSeconds}
	v := View{Name: "functions", Whole: b.component(groups, Component{}, whole.name, whole.from, of(whole))}
	list := parts(groups, functionSeconds, "CPU time, times the share in the profile", "", nil)
	for _, s := range list {
		v.Components = append(v.Components, b.component(groups, v.Whole, s.name, s.from, of(s)))
	}
	for i := range groups {
		b.unlisted(&groups[i], list)
	}
	b.add(v)
}

// unlisted adds a note if functions of a view are not listed by any run of a group that has others, which may have them.
func (b *Blame) unlisted(g *sample, list []source) {
	most := 0.0 // that a function may have in the others, in a repetition or operation
	for i := range g.repeats {
		r, least := &g.repeats[i], math.Inf(1)
		for name, v := range r.Totals {
			if strings.HasPrefix(name, functionSeconds+"{") && name != functionSeconds+"{"+run.Others+"}" {
				least = min(least, v)
			}
		}
		if _, others := r.Totals[functionSeconds+"{"+run.Others+"}"]; !others || math.IsInf(least, 0) {
			return
		}
		most += least / r.divisor() / float64(len(g.repeats))
	}
	var names []string
	for _, s := range list {
		if strings.Contains(s.total, "\x00") || slices.ContainsFunc(g.repeats, func(r repeat) bool { _, has := r.Totals[s.total]; return has }) {
			continue
		}
		names = append(names, s.name)
	}
	if len(names) > 0 {
		b.Notes = append(b.Notes, fmt.Sprintf("%s: %s is not among the functions that its runs list, so it may have up to %.2g %s there, which count as %s",
			g.info.Name, strings.Join(names, ", "), most, b.Unit, run.Others))
	}
}

// add adds a view, with the tests corrected for all its components.
func (b *Blame) add(v View) {
	all := make([]*Component, 0, len(v.Components)+1)
	for i := range v.Components {
		all = append(all, &v.Components[i])
	}
	if v.Rest.Name != "" {
		all = append(all, &v.Rest)
	}
	p := make([]float64, 0, len(all))
	for _, s := range all {
		p = append(p, s.P)
	}
	for i, corrected := range stat.Holm(p) {
		all[i].P, all[i].Sure = corrected, corrected <= Alpha
	}
	b.Views = append(b.Views, v)
}

// component computes a component of a whole from the seconds of each repetition.
func (b *Blame) component(groups [2]sample, whole Component, name, from string, of func(*repeat) float64) Component {
	var values [2][]float64
	var mean [2]float64
	for i := range groups {
		n := float64(len(groups[i].repeats))
		for j := range groups[i].repeats {
			r := &groups[i].repeats[j]
			v := of(r)
			if b.Unit == "s/op" {
				v /= r.operations
			}
			values[i] = append(values[i], v)
			mean[i] += v / n
		}
	}
	s := Component{Name: name, Source: from, Before: mean[0], After: mean[1], Difference: stat.Shift(values[0], values[1], confidenceLevel)}
	s.Difference.Value = s.After - s.Before
	s.Difference.Low, s.Difference.High = math.Min(s.Difference.Low, s.Difference.Value), math.Max(s.Difference.High, s.Difference.Value)
	s.P = stat.MannWhitney(values[0], values[1]).P
	s.Sure, s.Share = s.P <= Alpha, 1
	if whole.Name != "" {
		s.Share = s.Difference.Value / whole.Difference.Value
	}
	return s
}

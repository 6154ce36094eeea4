// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/promql"
)

// A Coincidence is an event of a workload at about the time of an anomaly. It need not be the cause.
type Coincidence struct {
	Time     time.Time
	Workload string // "" is the machine or the agent
	Instance string
	What     string // "the container was started"
	// Artefact marks an event that changed the measurement. The workload itself may not have changed.
	Artefact bool
}

// past holds the events of the time in which changes are searched.
type past struct {
	events []Coincidence
	// successor maps a container to the one that replaced it. A new container is a new workload.
	successor map[query.Target]query.Target
}

// Queries for events. Start times are values, and identities are labels.
var (
	containerStarts = `max by (instance, workload) (container_start_time_seconds * on (instance, id) group_left (workload) ` +
		promql.Newest("teescope_container_info", "instance", "id") + `)`
	enclaveStarts = `max by (instance, workload) (sgx_enclave_start_time_seconds * on (instance, enclave, pid) group_left (workload) ` +
		promql.Newest("sgx_enclave_info", "instance", "enclave", "pid") + `)`
)

const (
	agentStarts = `max by (instance) (process_start_time_seconds and on (instance, job) teescope_build_info)`
	containers  = `max by (instance, workload, container, namespace, name, image) (teescope_container_info)`
	runtimes    = `max by (instance, workload, tee, runtime) (teescope_workload_info)`
	// Missed runs come and go. So they do not count as a change of the level. Each level is a series, and the current one is 1. For
	// some minutes after a restart of the agent there are two.
	levels = `max by (instance, level) (teescope_self_level{level!="incomplete"} == 1 or ` +
		`label_replace(teescope_self_level{level="incomplete"} == 1, "level", "full", "", ""))`
	clockSteps = `sum by (instance) (increase(teescope_clock_steps_total[$step])) > 0`
	// A program start after another one ended: a restart, unless the workload does so often.
	programStarts = `sum by (instance, workload) (increase(teescope_execs_total[$step])) > 0 and on (instance, workload) ` +
		`sum by (instance, workload) (increase(teescope_exits_total[$twice])) > 0`
)

// rarely is the largest number of steps with program starts at which a start is worth reporting. One start shows in two
// steps, because ranges overlap by half a step. Without the overlap, an increase between the samples of two ranges
// would show in neither.
const rarely = 4

// history queries the events between start and at.
func history(q *query.Asker, start, at time.Time, step time.Duration) past {
	k := past{successor: make(map[query.Target]query.Target)}
	begun := func(expr, what string, artefact bool) {
		for _, s := range q.Instant(expr, at) {
			began := time.UnixMilli(int64(s.Value * 1000))
			if began.After(start.Add(-step)) && !began.After(at) {
				p := query.TargetOf(s.Labels)
				k.add(Coincidence{Time: began, Workload: p.Workload, Instance: p.Instance, What: what, Artefact: artefact})
			}
		}
	}
	begun(containerStarts, "the container was started", false)
	begun(enclaveStarts, "an enclave was created", false)
	begun(agentStarts, "teescope was started", true)
	stepped := func(expr string) []query.Series {
		return q.Range(strings.NewReplacer("$step", query.Duration(step*3/2), "$twice", query.Duration(step*5/2)).Replace(expr), start, at, step)
	}
	for _, s := range stepped(programStarts) {
		for _, t := range s.Points {
			if p := query.TargetOf(s.Labels); len(s.Points) <= rarely && !query.Collective(p.Workload) {
				k.add(Coincidence{Time: t.Time.Add(-step / 2), Workload: p.Workload, Instance: p.Instance, What: "one of its programs ended and one was started"})
			}
		}
	}
	for _, s := range stepped(clockSteps) {
		for _, t := range s.Points {
			k.add(Coincidence{Time: t.Time, Instance: query.TargetOf(s.Labels).Instance, What: "the clock of the machine was set", Artefact: true})
		}
	}
	k.relabelled(stepped(runtimes), step, false, func(l map[string]string) string {
		return strings.TrimSpace("runs in " + cmp.Or(l["tee"], "no TEE") + " " + l["runtime"])
	})
	k.relabelled(stepped(levels), step, true, func(l map[string]string) string { return "teescope counts at the level " + l["level"] })
	k.replaced(stepped(containers))
	return k
}

func (k *past) add(c Coincidence) { k.events = append(k.events, c) }

// relabelled finds workloads whose labels changed.
func (k *past) relabelled(series []query.Series, step time.Duration, artefact bool, say func(map[string]string) string) {
	by := make(map[query.Target][]query.Series)
	for _, s := range series {
		for _, part := range query.Stretches(s.Points, step) {
			by[query.TargetOf(s.Labels)] = append(by[query.TargetOf(s.Labels)], query.Series{Labels: s.Labels, Points: part})
		}
	}
	for p, list := range by {
		slices.SortFunc(list, firstPoint)
		for i, s := range list[1:] {
			if was, is := say(list[i].Labels), say(s.Labels); was != is && began(list[i]).Before(began(s)) {
				k.add(Coincidence{
					Time: began(s), Workload: p.Workload, Instance: p.Instance, Artefact: artefact,
					What: is + "; before: " + was,
				})
			}
		}
	}
}

func began(s query.Series) time.Time { return s.Points[0].Time }
func ended(s query.Series) time.Time { return s.Points[len(s.Points)-1].Time }

func firstPoint(a, b query.Series) int {
	return cmp.Or(began(a).Compare(began(b)), cmp.Compare(a.Labels["workload"], b.Labels["workload"]))
}

// replaced finds consecutive containers of the same name.
func (k *past) replaced(series []query.Series) {
	by := make(map[string][]query.Series)
	for _, s := range series {
		l := s.Labels
		name := cmp.Or(l["container"], l["name"])
		if name != "" && l["workload"] != "" && len(s.Points) > 0 {
			id := l["instance"] + "\x00" + l["namespace"] + "\x00" + name
			by[id] = append(by[id], s)
		}
	}
	for _, list := range by {
		slices.SortFunc(list, firstPoint)
		for i, s := range list[1:] {
			was, is := list[i], s
			if !ended(was).Before(began(is)) || was.Labels["workload"] == is.Labels["workload"] {
				continue // containers that run at the same time do not replace each other
			}
			what := "the container was replaced by a new one of the same image"
			if was.Labels["image"] != is.Labels["image"] {
				what = fmt.Sprintf("the container was replaced: image %s, before %s", is.Labels["image"], was.Labels["image"])
			}
			p := query.TargetOf(is.Labels)
			k.successor[query.TargetOf(was.Labels)] = p
			k.add(Coincidence{Time: began(is), Workload: p.Workload, Instance: p.Instance, What: what})
		}
	}
}

// joined prepends the points of a replaced container to those of its successor, so that a change between the two is
// found.
func (k *past) joined(series []query.Series) []query.Series {
	if len(k.successor) == 0 {
		return series
	}
	series = slices.DeleteFunc(slices.Clone(series), func(s query.Series) bool { return len(s.Points) == 0 })
	slices.SortFunc(series, firstPoint)
	by := make(map[query.Target]int)
	for i, s := range series {
		by[query.TargetOf(s.Labels)] = i
	}
	gone := make(map[query.Target]bool)
	for _, s := range series {
		next, there := by[k.successor[query.TargetOf(s.Labels)]]
		old := by[query.TargetOf(s.Labels)]
		if there && ended(series[old]).Before(began(series[next])) {
			series[next].Points = slices.Concat(series[old].Points, series[next].Points)
			gone[query.TargetOf(s.Labels)] = true
		}
	}
	return slices.DeleteFunc(series, func(s query.Series) bool { return gone[query.TargetOf(s.Labels)] })
}

// around returns the events near an anomaly, in order of time.
func (k *past) around(a *Anomaly, window, margin time.Duration) []Coincidence {
	from, to := a.Time.Add(-margin), a.Time.Add(margin)
	if a.Rule == BaselineRule {
		from, to = a.Time.Add(-window-margin), a.Time
	}
	var near []Coincidence
	for _, e := range k.events {
		here := e.Workload == a.Workload || e.Workload == ""
		if here && e.Instance == a.Instance && !e.Time.Before(from) && !e.Time.After(to) {
			near = append(near, e)
		}
	}
	slices.SortFunc(near, func(a, b Coincidence) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.What, b.What)) })
	return near
}

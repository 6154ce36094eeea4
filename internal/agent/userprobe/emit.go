// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// families are the families about the user's probes. Those that the probes count are made from the file.
type families struct {
	events, lost, folded, cost, cpu *metric.Desc
}

func newFamilies() *families {
	own := metric.Own("teescope")
	return &families{
		events: own(metric.Desc{Name: "teescope_user_probe_events_total", Kind: metric.Counter, Unit: "events", Labels: []string{"probe"},
			Help: "Events at which a program of the user's probe ran, also those that the probe's filter leaves out. A timed call has two such events."}),
		lost: own(metric.Desc{Name: "teescope_user_probe_lost_events_total", Kind: metric.Counter, Unit: "events", Labels: []string{"probe", "reason"},
			Help: "Events of a user's probe that are not counted, by reason. full: there was no room for a series. negative: the value was below zero. " +
				"unpaired: a return without a known entry, as when a function calls itself. unread: a value could not be read."}),
		folded: own(metric.Desc{Name: "teescope_user_probe_folded_events_total", Kind: metric.Counter, Unit: "events", Labels: []string{"probe"},
			Help: "Events of a user's probe that are counted with other as the value of its keys, because the file's limit of series is reached."}),
		cost: own(metric.Desc{Name: "teescope_user_probe_event_cost_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: []string{"probe", "part"},
			Help: "CPU time that one event of a user's probe costs. program is one run of its program, which measures itself for a second in thirty. kernel is the kernel's path to it, which is a constant."}),
		cpu: own(metric.Desc{Name: "teescope_user_probe_cpu_seconds_total", Kind: metric.Counter, Unit: "seconds", Labels: []string{"probe"},
			Help: "CPU time that a user's probe has taken: its events times the cost of one. Above half of overhead.budget, the most expensive probe is detached."}),
	}
}

func (f *families) all() []*metric.Desc {
	return []*metric.Desc{f.events, f.lost, f.folded, f.cost, f.cpu}
}

// workloadLabels are those of all families by workload.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

func (a *active) histogram() bool { return a.Value.Kind == probefile.Histogram }

// Family returns the description of a probe's metric.
func Family(p *probefile.Probe) *metric.Desc {
	kind, unit := metric.Counter, p.Value.Unit
	var bounds []float64
	if v := &p.Value; v.Kind == probefile.Histogram {
		kind = metric.Histogram
		for i := range v.Last - v.First + 1 {
			bounds = append(bounds, bound(v, i))
		}
	}
	if unit == "" {
		unit = "events"
	}
	labels := append([]string{}, workloadLabels...)
	for _, k := range p.Keys {
		labels = append(labels, k.Label)
	}
	return metric.New(metric.Desc{
		Name: p.Family(), Kind: kind, Unit: unit, Help: p.Help, Labels: labels, Bounds: bounds, Source: metric.Kernel,
		Origin: string(p.Mechanism) + " " + p.Target.String(),
	})
}

// emit emits the counts of the attached probes.
func (o *owners) emit(emit func(prometheus.Metric)) {
	totals := o.totals()
	for _, a := range o.kernel.probes {
		if !a.status.Attached() {
			continue
		}
		family := Family(a.Probe)
		for w, c := range totals {
			for _, s := range a.labelled(w, c) {
				emit(a.sample(family, w, s))
			}
		}
	}
}

// labelled is a total with its label values.
type labelled struct {
	values []string
	total
}

// labelled returns the series of a workload. Series with equal labels are merged.
func (a *active) labelled(w *workload.Workload[counts], c counts) []*labelled {
	var all []*labelled
	by := map[string]*labelled{}
	for _, key := range c.sorted(a.number) {
		values := append([]string{w.Name, w.Container, w.Pod, w.Namespace}, a.values(key)...)
		id := strings.Join(values, "\x00")
		if by[id] == nil {
			by[id] = &labelled{values: values}
			all = append(all, by[id])
		}
		by[id].combine(c[key], 1)
	}
	return all
}

// otherValue stands for the values of all series above the limit.
const otherValue = "other"

// values returns the values of a probe's own labels.
func (a *active) values(key seriesKey) []string {
	values := make([]string, len(a.keys))
	for i, at := range a.keys {
		switch {
		case key.Folded != 0:
			values[i] = otherValue
		case at.Origin == fromComm:
			values[i] = text.Label(unix.ByteSliceToString(key.Comm[:]))
		case at.IsError != 0 && key.Key[i] != 0 && unix.ErrnoName(unix.Errno(key.Key[i])) != "":
			values[i] = unix.ErrnoName(unix.Errno(key.Key[i]))
		case at.IsSigned != 0:
			values[i] = strconv.FormatInt(int64(key.Key[i]), 10)
		default:
			values[i] = strconv.FormatUint(key.Key[i], 10)
		}
	}
	return values
}

func (a *active) sample(family *metric.Desc, w *workload.Workload[counts], s *labelled) prometheus.Metric {
	v := &a.Value
	switch v.Kind {
	case probefile.Events:
		return family.Since(w.Began, float64(s.events), s.values...)
	case probefile.Sum:
		return family.Since(w.Began, float64(s.sum)*v.Scale, s.values...)
	}
	upTo, n := metric.Cumulated(s.buckets[:v.Last-v.First+2])
	return family.Distribution(w.Began, upTo, n, float64(s.sum)*v.Scale, s.values...)
}

// bound returns a bound of a histogram. 1e-9 is not a binary fraction, so the power is divided by its inverse, which gives the
// nearest number.
func bound(v *probefile.Value, i int) float64 {
	power := math.Ldexp(1, v.First+i)
	if v.Scale < 1 {
		return power / math.Round(1/v.Scale)
	}
	return power * v.Scale
}

// emitSelf emits the statistics of the probes, and their cost.
func (k *kernelSide) emitSelf(f *families, emit func(prometheus.Metric)) {
	for _, a := range k.probes {
		if len(a.programs) == 0 {
			continue
		}
		t := k.tallyOf(a.number)
		emit(f.events.Value(float64(t.Events), a.Name))
		emit(f.folded.Value(float64(t.Folded), a.Name))
		for reason, n := range map[string]uint64{"full": t.Full, "negative": t.Negative, "unpaired": t.Unpaired, "unread": t.Unread} {
			emit(f.lost.Value(float64(n), a.Name, reason))
		}
		emit(f.cost.Value(a.path().Seconds(), a.Name, "kernel"))
		if cost, measured := t.program(); measured {
			emit(f.cost.Value(cost.Seconds(), a.Name, "program"))
		}
		emit(f.cpu.Value(a.took.total().Seconds(), a.Name))
	}
}

// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"

	"github.com/teescope/teescope/internal/lib/operation"
	"github.com/teescope/teescope/internal/lib/promql"
)

// Workload says whose metrics an endpoint has, and which of them count operations.
type Workload struct {
	Name    string // empty: not stated
	Machine string // the label instance of its agent; empty: see [machineOf]
	// Operations and Latency are PromQL selectors. Without Operations, a known counter is read if there is one.
	Operations, Latency string
}

// Limits of the series that are copied from one target.
const (
	mostCounters  = 500
	mostHistogram = 2000
)

// machineOf returns the label instance of the machine of an endpoint's workload. It is the stated one, else that of the
// agent on the endpoint's host, else that of the only agent. An error asks the user for it, because a wrong machine would
// give wrong costs. here is the label of the agent of this process, or empty.
func machineOf(e Endpoint, targets []string, here string) (string, error) {
	var all []string
	if here != "" {
		all = append(all, here)
	}
	for _, t := range targets {
		all = append(all, strings.TrimPrefix(t, "https://"))
	}
	if len(all) == 0 {
		return "", fmt.Errorf("scrape: %s=%s: no agent watches the workload %s: add it to targets", e.Job, shownURL(e.URL), e.Workload.Name)
	}
	if stated := e.Workload.Machine; stated != "" {
		if slices.Contains(all, stated) {
			return stated, nil
		}
		return "", fmt.Errorf("scrape: %s=%s: machine=%s is not an agent: use one of %s", e.Job, shownURL(e.URL), stated, strings.Join(all, ", "))
	}
	var same []string
	for _, one := range all {
		if host, _, err := net.SplitHostPort(one); err == nil && host == e.URL.Hostname() {
			same = append(same, one)
		}
	}
	ip := net.ParseIP(e.URL.Hostname())
	local := e.URL.Hostname() == "localhost" || e.URL.Hostname() == here || ip != nil && ip.IsLoopback()
	if local && here != "" {
		same = append(same, here)
	}
	switch {
	case len(same) == 1:
		return same[0], nil
	case len(all) == 1:
		return all[0], nil
	}
	return "", fmt.Errorf("scrape: %s=%s: it is not known which agent watches the workload %s: add machine=, one of %s",
		e.Job, shownURL(e.URL), e.Workload.Name, strings.Join(all, ", "))
}

// shownURL omits the parameters, which can be secret.
func shownURL(u *url.URL) string {
	shown, _, _ := strings.Cut(u.String(), "?")
	return shown
}

// A sourceState is the state of a counter or histogram of a target.
type sourceState struct {
	selector string // as the operator wrote it, or the name that was guessed
	basis    string
	state    string
	kind     string // "operations" or "latency"
}

// operationsOf copies the samples of a workload's counter and histogram. It takes the names and the identifying labels from
// the configuration only. What a target sends in a label workload, machine or instance has no effect.
type operationsOf struct {
	key               accountKey
	workload, machine string
	operations        string // the selector; empty: guess
	latency           string
	counter           []*labels.Matcher
	counterName       string
	histogram         []*labels.Matcher
	histogramName     string

	mu      sync.Mutex
	states  [2]sourceState           // of the last scrape: of the counter and of the histogram
	written map[uint64]labels.Labels // the copies that have samples, by the series that is copied
}

func newOperations(e Endpoint, machine string) (*operationsOf, error) {
	w := e.Workload
	o := &operationsOf{
		key:      accountKey{e.Job, e.URL.Host},
		workload: w.Name, machine: machine, operations: w.Operations, latency: w.Latency, written: map[uint64]labels.Labels{}}
	var err error
	o.states[0] = sourceState{w.Operations, operation.Configured, operation.Waiting, "operations"}
	if w.Operations == "" {
		o.states[0].basis = operation.Guessed
	} else if o.counterName, o.counter, err = promql.Selector(w.Operations); err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	if w.Latency != "" {
		o.states[1] = sourceState{w.Latency, operation.Configured, operation.Waiting, "latency"}
		if o.histogramName, o.histogram, err = promql.Selector(w.Latency); err != nil {
			return nil, fmt.Errorf("latency: %w", err)
		}
	}
	return o, nil
}

// operationsOfAll returns the copier of each endpoint with a workload, by the endpoint's number.
func operationsOfAll(o Options) (map[string]*operationsOf, error) {
	all := map[string]*operationsOf{}
	here := ""
	if o.Agent {
		here = o.Instance
	}
	for i, e := range o.Endpoints {
		if e.Workload.Name == "" {
			continue
		}
		machine, err := machineOf(e, o.Targets, here)
		if err != nil {
			return nil, err
		}
		if all[strconv.Itoa(i)], err = newOperations(e, machine); err != nil {
			return nil, fmt.Errorf("scrape: %s=%s: %w", e.Job, shownURL(e.URL), err)
		}
	}
	return all, nil
}

// A taken sample is one of the counter or histogram of a scrape.
type taken struct {
	id   uint64 // of the series, by its labels: a reference differs once the series is stored
	from labels.Labels
	t    int64
	v    float64
	h    *histogram.Histogram
	fh   *histogram.FloatHistogram
}

// takings are the samples of one scrape.
type takings struct {
	of         *operationsOf
	counters   map[string][]taken // by the name of the metric
	histograms []taken
	tooMany    map[string]bool                              // metrics above the limits
	typeOf     func(metric string) (model.MetricType, bool) // of a family
}

// take keeps a sample that is copied at the end of the scrape, all or none.
func (k *takings) take(ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram) {
	name := ls.Get(model.MetricNameLabel)
	one := taken{from: ls, t: t, v: v, h: h, fh: fh}
	if k.of.counts(name) && h == nil && fh == nil && matches(k.of.counter, ls) {
		if n := len(k.counters[name]); n >= mostCounters {
			k.tooMany[name] = true
		} else {
			one.id = labels.StableHash(ls)
			k.counters[name] = append(k.counters[name], one)
		}
	}
	if base, classic := strings.CutSuffix(name, "_bucket"); k.of.histogramName != "" && base == k.of.histogramName && classic == (h == nil && fh == nil) && matches(k.of.histogram, ls) {
		if len(k.histograms) >= mostHistogram {
			k.tooMany[base] = true
		} else {
			one.id = labels.StableHash(ls)
			k.histograms = append(k.histograms, one)
		}
	}
}

func (o *operationsOf) counts(name string) bool {
	if o.operations != "" {
		return name == o.counterName
	}
	return slices.ContainsFunc(operation.Known(), func(k operation.KnownCounter) bool { return k.Metric == name })
}

// matches reports whether labels match, except for the name: the names of a histogram's series differ from its
// selector.
func matches(all []*labels.Matcher, ls labels.Labels) bool {
	return !slices.ContainsFunc(all, func(m *labels.Matcher) bool { return m.Name != model.MetricNameLabel && !m.Matches(ls.Get(m.Name)) })
}

// guess returns the known counter of a scrape.
func (k *takings) guess() (name, state string) {
	exporter := ""
	for _, known := range operation.Known() {
		switch {
		case len(k.counters[known.Metric]) == 0:
		case name == "":
			name, exporter = known.Metric, known.Exporter
		case known.Exporter != exporter:
			return "", operation.Ambiguous
		}
	}
	if name == "" {
		return "", operation.NoKnown
	}
	return name, operation.Counted
}

// A copyTo stores copies.
type copyTo struct {
	allow func(labels.Labels) error // whether the target may have one more series
	store func(labels.Labels, taken) error
}

// copyAll stores the copies at the end of a scrape. If the samples cannot be used, it ends the series that were copied
// before. So no rate covers a part of the operations only.
func (k *takings) copyAll(to copyTo, down bool) {
	o := k.of
	o.mu.Lock()
	defer o.mu.Unlock()
	if down {
		for i := range o.states {
			o.states[i].state = operation.Down
		}
		k.end(to, nil)
		return
	}
	state, name := operation.Counted, o.counterName
	if o.operations == "" {
		name, state = k.guess()
		o.states[0].selector = name
	}
	counters := k.counters[name]
	if state == operation.Counted {
		state = k.judge(name, counters)
	}
	keep := map[uint64]bool{}
	o.states[0].state = k.write(to, keep, state, counters, func(b *labels.Builder) {
		b.Set(model.MetricNameLabel, operation.Family)
		b.Set(operation.Counter, name)
		b.Set(operation.Basis, o.states[0].basis)
	})
	if o.latency != "" {
		unit := o.histogramName[strings.LastIndexByte(o.histogramName, '_')+1:]
		o.states[1].state = k.write(to, keep, k.judgeHistogram(), k.histograms, func(b *labels.Builder) {
			family := operation.Durations
			if le := b.Get(model.BucketLabel); le != "" {
				family += "_bucket"
			}
			b.Set(model.MetricNameLabel, family)
			b.Set(operation.Counter, o.histogramName)
			b.Set(operation.Unit, unit)
		})
	}
	k.end(to, keep)
}

// judge returns whether the samples are those of a counter of operations.
func (k *takings) judge(name string, all []taken) string {
	fresh := 0
	for _, one := range all {
		if stale.IsStaleNaN(one.v) {
			continue
		}
		if !(one.v >= 0 && one.v <= operation.Most) {
			return operation.Invalid
		}
		fresh++
	}
	switch kind, known := k.typeOf(name); {
	case k.tooMany[name]:
		return operation.TooMany
	case fresh == 0:
		return operation.Missing
	case known && kind != model.MetricTypeCounter && kind != model.MetricTypeUnknown:
		return operation.NoCounter
	}
	return operation.Counted
}

func (k *takings) judgeHistogram() string {
	switch {
	case k.tooMany[k.of.histogramName]:
		return operation.TooMany
	case !slices.ContainsFunc(k.histograms, func(one taken) bool { return !stale.IsStaleNaN(one.v) }):
		return operation.Missing
	case slices.ContainsFunc(k.histograms, func(one taken) bool {
		return one.h == nil && one.fh == nil && !stale.IsStaleNaN(one.v) && !(one.v >= 0 && one.v <= operation.Most)
	}):
		return operation.Invalid
	}
	return operation.Counted
}

// write stores the copies of one metric, all or none, and returns its state.
func (k *takings) write(to copyTo, keep map[uint64]bool, state string, all []taken, name func(*labels.Builder)) string {
	if state != operation.Counted {
		return state
	}
	as := make(map[uint64]labels.Labels, len(all))
	for _, one := range all {
		if stale.IsStaleNaN(one.v) {
			continue // ended below
		}
		known, there := k.of.written[one.id]
		if !there {
			known = k.of.labels(one, name)
			if err := to.allow(known); err != nil {
				return operation.Refused
			}
		}
		as[one.id] = known
	}
	for _, one := range all {
		ls, there := as[one.id]
		if !there || stale.IsStaleNaN(one.v) {
			continue
		}
		if err := to.store(ls, one); err != nil {
			return operation.Refused
		}
		k.of.written[one.id], keep[one.id] = ls, true
	}
	return state
}

// labels returns the labels of a copy.
func (o *operationsOf) labels(one taken, name func(*labels.Builder)) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	if le := one.from.Get(model.BucketLabel); one.h == nil && one.fh == nil && strings.HasSuffix(one.from.Get(model.MetricNameLabel), "_bucket") {
		b.Set(model.BucketLabel, le)
	}
	name(b)
	b.Set(model.InstanceLabel, o.machine)
	b.Set(model.JobLabel, one.from.Get(model.JobLabel))
	b.Set("workload", o.workload)
	b.Set(operation.Series, strconv.FormatUint(one.id, 16))
	return b.Labels()
}

// end marks the copies that are not kept as ended.
func (k *takings) end(to copyTo, keep map[uint64]bool) {
	if len(k.of.written) == len(keep) {
		return
	}
	at := int64(0)
	for _, list := range k.counters {
		for _, one := range list {
			at = max(at, one.t)
		}
	}
	for _, one := range k.histograms {
		at = max(at, one.t)
	}
	maps.DeleteFunc(k.of.written, func(id uint64, ls labels.Labels) bool {
		if keep[id] {
			return false
		}
		if at > 0 {
			_ = to.store(ls, taken{t: at, v: math.Float64frombits(stale.StaleNaN)}) // then it ends after some minutes
		}
		return true
	})
}

// sources returns the states of the last scrape.
func (o *operationsOf) sources() (all []sourceState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.states {
		if s.kind != "" {
			all = append(all, s)
		}
	}
	return all
}

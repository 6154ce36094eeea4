// SPDX-License-Identifier: Apache-2.0

package top

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/exposition"
)

// errNoWorkloads reports that an exposition is not from an agent.
var errNoWorkloads = errors.New("the exposition contains no workloads")

// Sample is the content of one scrape.
type Sample struct {
	At        time.Time
	Started   float64         // when the agent started, in Unix seconds; 0 when unknown
	Attached  map[string]bool // by probe
	Workloads map[Key]*Workload
	Enclaves  map[Series]float64 // of the machine: the families sgx_ without a workload
	VMs       map[string]*VM     // by name
}

// Workload is the content of one scrape about a workload.
type Workload struct {
	Kind, TEE, Runtime string
	Values             map[Series]float64
	Processes          map[Process]map[Series]float64 // the watched ones
}

// Process is a watched process of a workload.
type Process struct{ PID, Comm string }

// ownLabels returns the labels that become A and B, for the families of workloads that are shown.
func ownLabels(family string) (labels [2]string, shown bool) {
	switch family {
	case syscalls, syscallSeconds:
		return [2]string{"syscall"}, true
	case switches:
		return [2]string{"kind"}, true
	case faults:
		return [2]string{"reason", "mode"}, true
	case faultsHandled:
		return [2]string{"type"}, true
	case pageCache:
		return [2]string{"op"}, true
	case cpuSeconds:
		return [2]string{"mode"}, true
	case runQueueWait, migrations, resident, processes, threads, forks, threadStarts, execs, exits:
		return [2]string{}, true
	}
	return [2]string{}, false
}

// parseExposition parses the text format of Prometheus.
func parseExposition(data []byte) (*Sample, error) {
	families, err := exposition.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("parsing the exposition: %w", err)
	}
	s := &Sample{Attached: map[string]bool{}, Workloads: map[Key]*Workload{}, Enclaves: map[Series]float64{}, VMs: map[string]*VM{}}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			if v, ok := value(m); ok && known(v) {
				s.add(name, labelsOf(m), v)
			}
		}
	}
	if len(s.Workloads) == 0 {
		return nil, errNoWorkloads
	}
	return s, nil
}

func value(m *dto.Metric) (float64, bool) {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	case m.Untyped != nil:
		return m.Untyped.GetValue(), true
	}
	return 0, false
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = clean(l.GetValue())
	}
	return labels
}

// add records one value.
func (s *Sample) add(family string, labels map[string]string, v float64) {
	name, isWorkload := labels["workload"]
	switch {
	case s.addVM(family, labels, v):
	case family == processStart:
		s.Started = v
	case family == probeAttached:
		s.Attached[labels["probe"]] = s.Attached[labels["probe"]] || v == 1
	case strings.HasPrefix(family, enclavePrefix) && !isWorkload:
		s.Enclaves[others(family, labels)] = v
	case isWorkload:
		s.workload(Key{name, labels["container"], labels["pod"], labels["namespace"]}).add(family, labels, v)
	}
}

func (s *Sample) workload(k Key) *Workload {
	w := s.Workloads[k]
	if w == nil {
		w = &Workload{Values: map[Series]float64{}, Processes: map[Process]map[Series]float64{}}
		s.Workloads[k] = w
	}
	return w
}

func (w *Workload) add(family string, labels map[string]string, v float64) {
	if family == workloadInfo {
		w.Kind, w.TEE, w.Runtime = labels["kind"], labels["tee"], labels["runtime"]
		return
	}
	if strings.HasPrefix(family, enclavePrefix) {
		w.Values[others(family, labels)] = v
		return
	}
	values := w.Values
	if pid, ok := labels["pid"]; ok {
		family = "teescope_" + strings.TrimPrefix(family, processPrefix)
		p := Process{PID: pid, Comm: labels["comm"]}
		if values = w.Processes[p]; values == nil {
			values = map[Series]float64{}
			w.Processes[p] = values
		}
	}
	if own, shown := ownLabels(family); shown {
		values[Series{family, labels[own[0]], labels[own[1]]}] = v
	}
}

// others returns a series of a family whose labels are not known here. A and B are the first two labels, sorted by
// name, that do not identify a workload.
func others(family string, labels map[string]string) Series {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch name {
		case "workload", "container", "pod", "namespace":
		default:
			list = append(list, labels[name])
		}
	}
	list = append(list, "", "")
	return Series{family, list[0], list[1]}
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/exposition"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
)

// Families whose values the recorder itself reads.
const (
	workloadsOf   = "teescope_workload_info"
	containersOf  = "teescope_container_info"
	callsOf       = "teescope_syscalls_total"
	cpuOf         = "teescope_cpu_seconds_total"
	varianceOf    = "teescope_sampling_variance_total"
	ratioOf       = "teescope_sampling_ratio"
	levelOf       = "teescope_self_level"
	createdOf     = "sgx_workload_enclaves_created_total"
	processPrefix = "teescope_process_"
	// containerPrefix begins the families of control groups. They have no workload: containersOf has the one of each.
	containerPrefix = "container_"
	workloadLabel   = "workload"
)

// crossingsOf are the families of crossings of the boundary of enclaves.
var crossingsOf = []string{"teescope_ecalls_total", "teescope_ocalls_total", "teescope_enclave_transitions_total"}

// unrelated are the prefixes of families about the agent's process, which are not recorded.
var unrelated = []string{
	"go_", "process_", "promhttp_", "node_scrape_", "node_timex_", "teescope_bpf_", "teescope_collector_", "teescope_start_seconds",
	"teescope_slots", "teescope_proc_reads_", "teescope_sandbox", "prometheus_", "scrape_",
}

// A point is one value of an exposition.
type point struct {
	series *run.Series
	id     string
	value  float64
}

// workload returns the workload that the point is about, or "" for the machine.
func (p point) workload() string { return p.series.Labels[workloadLabel] }

// maxKnown bounds the series whose names and labels a reader keeps.
const maxKnown = 200_000

// reader reads expositions of one agent. It parses the name and the labels of a series once, because a sample every second
// must cost little.
type reader struct {
	known map[string]point // by the text before the value
	types map[string]string
}

func newReader() *reader { return &reader{known: map[string]point{}, types: map[string]string{}} }

// errNoMetrics is the error of an answer that has no line of the format.
var errNoMetrics = errors.New("the answer has no metrics in the text format of Prometheus")

// read returns the values of an exposition, in its order. The first of several values with the same name and labels counts.
func (r *reader) read(data []byte) ([]point, error) {
	if len(r.known) > maxKnown {
		clear(r.known)
	}
	all := make([]point, 0, len(r.known))
	seen := make(map[string]bool, len(r.known))
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			r.comment(line)
			continue
		}
		key, rest := cutKey(line)
		value, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" ")) // a time may follow
		v, err := strconv.ParseFloat(string(value), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		p, ok := r.known[string(key)]
		if !ok {
			if p, ok = r.parse(key); !ok {
				continue
			}
			r.known[string(key)] = p
		}
		if seen[p.id] {
			continue
		}
		seen[p.id] = true
		p.value = v
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, errNoMetrics
	}
	return all, nil
}

// comment notes the type of a family: "# TYPE teescope_forks_total counter".
func (r *reader) comment(line []byte) {
	if fields := strings.Fields(string(line)); len(fields) == 4 && fields[1] == "TYPE" && len(r.types) < maxKnown {
		r.types[fields[2]] = fields[3]
	}
}

// cutKey separates the name and the labels from the value.
func cutKey(line []byte) (key, rest []byte) {
	at := bytes.LastIndexByte(line, '}') + 1
	if at == 0 {
		at = max(0, bytes.IndexByte(line, ' '))
	}
	return bytes.TrimSpace(line[:at]), line[at:]
}

// parse parses the name and the labels of a series.
func (r *reader) parse(key []byte) (point, bool) {
	families, err := exposition.Parse(append(bytes.Clone(key), " 0\n"...))
	if err != nil || len(families) != 1 {
		return point{}, false
	}
	for name, family := range families {
		if len(family.GetMetric()) != 1 {
			break
		}
		labels := map[string]string{}
		for _, l := range family.GetMetric()[0].GetLabel() {
			if l.GetValue() != "" { // an empty label is none
				labels[l.GetName()] = text.UTF8(l.GetValue())
			}
		}
		p := point{series: &run.Series{Name: name, Labels: labels, Kind: r.kind(name), Unit: run.Unit(name)}}
		p.id = p.series.ID()
		return p, true
	}
	return point{}, false
}

// kind returns the kind of a series. The parts of a histogram are counters.
func (r *reader) kind(name string) run.Kind {
	switch r.types[name] {
	case "counter":
		return run.Counter
	case "untyped":
		return untyped(name)
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if family, ok := strings.CutSuffix(name, part); ok && (r.types[family] == "histogram" || r.types[family] == "summary") {
			return run.Counter
		}
	}
	return run.Gauge
}

// untyped returns the kind of a value that its source does not give: those of /proc/vmstat and /proc/net/snmp count,
// except for a few.
func untyped(name string) run.Kind {
	counts := strings.HasPrefix(name, "node_vmstat_") || strings.HasPrefix(name, "node_netstat_")
	if counts && !strings.HasSuffix(name, "_CurrEstab") && !strings.HasSuffix(name, "_Forwarding") {
		return run.Counter
	}
	return run.Gauge
}

// groupsOf returns the control groups of the chosen workloads, as the label id of the families of containers has them.
func groupsOf(all []point, chosen map[string]bool) map[string]bool {
	groups := map[string]bool{}
	for _, p := range all {
		if p.series.Name != containersOf || !chosen[p.workload()] {
			continue
		}
		if id := p.series.Labels["id"]; id != "" {
			groups[id] = true
		}
	}
	return groups
}

// relevant reports whether a series is recorded: the machine, the workloads that were chosen, and their control groups.
func relevant(s *run.Series, chosen, groups map[string]bool) bool {
	if w, ok := s.Labels[workloadLabel]; ok {
		return chosen[w]
	}
	if strings.HasPrefix(s.Name, containerPrefix) {
		return groups[s.Labels["id"]]
	}
	return !slices.ContainsFunc(unrelated, func(prefix string) bool { return strings.HasPrefix(s.Name, prefix) })
}

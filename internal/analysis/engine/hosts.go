// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/analysis/query"
)

// Queries that find the machines. The second one finds those without an agent, such as a node exporter alone.
const (
	agentsQuery = `group by (instance) (last_over_time({__name__=~"teescope_build_info|teescope_processes"}[$window]))` +
		` or group by (instance) (last_over_time(up{job="teescope"}[$window]))`
	othersQuery  = `group by (instance) (last_over_time({__name__=~"$names",instance$of}[$window]))`
	scrapedQuery = `group by (instance) (last_over_time(up[$window]))`
)

// longestList is the maximum length of the instances in a query, in bytes. Databases limit the length of a query: 16 KiB is the limit of
// ours and of VictoriaMetrics.
const longestList = 8 << 10

// A Machine is a judged machine.
type Machine struct {
	Name   string       // empty if it is the only one
	Source query.Source // of its series
}

// Sources returns the sources of the judged machines.
func (r Result) Sources() (all []query.Source) {
	for _, m := range r.Machines {
		all = append(all, m.Source)
	}
	return all
}

// A host is a machine and the instances of its exporters, which differ in their ports.
type host struct {
	name      string
	instances []string
	matcher   string // of the label instance: selects its series, and those without an instance if there are any
}

// bare reports whether these are the workloads without an instance, and not a machine.
func (h host) bare() bool { return h.name == "" }

// rules returns the rules that apply. Samples of no machine are visible to all machines, and are not judged as one.
func (h host) rules(all []Rule) []Rule {
	if !h.bare() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(r Rule) bool { return r.Machine })
}

// hosts returns the machines that have samples of the metrics that rules read, sorted by name. It returns false if they
// are not known.
func (q *inquiry) hosts(rules []Rule) ([]host, bool) {
	found := make(map[string]bool)
	agents := q.own(agentsQuery)
	for _, s := range agents.samples {
		found[s.Labels["instance"]] = true
	}
	known := q.others(rules, found)
	bare := found[""]
	by := make(map[string][]string)
	for _, instance := range slices.Sorted(maps.Keys(found)) {
		name := instance
		if of, _, err := net.SplitHostPort(instance); err == nil {
			name = of
		}
		by[name] = append(by[name], instance)
	}
	var all []host
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, host{name: name, instances: by[name], matcher: matcherOf(by[name], bare)})
	}
	return all, agents.kind != query.Failed && known
}

// others adds the machines without an agent to those that were found. It returns false if they are not known.
func (q *inquiry) others(rules []Rule, found map[string]bool) bool {
	text := strings.ReplaceAll(othersQuery, "$names", strings.Join(metricsOf(rules), "|"))
	// One query excludes all agents. If these are too many, the queries name the other instances that are scraped.
	lists, operator := listsOf(found), "!~"
	if len(lists) > 1 {
		scraped := q.own(scrapedQuery)
		if scraped.kind == query.Failed {
			return false
		}
		others := map[string]bool{"": true} // series without an instance
		for _, s := range scraped.samples {
			if instance := s.Labels["instance"]; !found[instance] {
				others[instance] = true
			}
		}
		lists, operator = listsOf(others), "=~"
	}
	for _, list := range lists {
		others := q.own(strings.ReplaceAll(text, "$of", operator+strconv.Quote(list)))
		if others.kind == query.Failed {
			return false
		}
		for _, s := range others.samples {
			found[s.Labels["instance"]] = true
		}
	}
	return true
}

// listsOf returns regular expressions that match these instances. There is one at least, which may match the empty instance only.
func listsOf(instances map[string]bool) []string {
	lists := []string{""}
	for i, instance := range slices.Sorted(maps.Keys(instances)) {
		quoted := regexp.QuoteMeta(instance)
		switch last := &lists[len(lists)-1]; {
		case i == 0:
			*last = quoted
		case len(*last)+len(quoted) >= longestList:
			lists = append(lists, quoted)
		default:
			*last += "|" + quoted
		}
	}
	return lists
}

// metricsOf returns the names of the metrics that rules read, sorted.
func metricsOf(rules []Rule) []string {
	names := make(map[string]bool)
	for _, r := range rules {
		for _, s := range r.Signals {
			for _, name := range metricsIn(s.Query) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func matcherOf(instances []string, bare bool) string {
	if len(instances) == 1 && (!bare || instances[0] == "") {
		return "=" + strconv.Quote(instances[0])
	}
	var values []string
	for _, instance := range instances {
		values = append(values, regexp.QuoteMeta(instance))
	}
	if bare {
		values = append(values, "")
	}
	return "=~" + strconv.Quote(strings.Join(values, "|"))
}

// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"maps"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/teescope/teescope/internal/server/discovery"
)

// discover runs the discovery until ctx ends. The channel has the newest list of agents. It is nil without a discovery.
// Ended is closed when nothing runs any more.
func discover(ctx context.Context, finder *discovery.Finder) (found chan []discovery.Target, ended <-chan struct{}) {
	done := make(chan struct{})
	if finder == nil {
		close(done)
		return nil, done
	}
	found = make(chan []discovery.Target, 1)
	go func() {
		defer close(done)
		finder.Run(ctx, func(agents []discovery.Target) {
			select {
			case <-found: // an older list that was not received
			default:
			}
			found <- agents
		})
	}()
	return found, done
}

// withFound adds the agents of the discovery to the groups of the configuration. An address of the configuration keeps the
// labels that it has there.
func withFound(fixed map[string][]*targetgroup.Group, agents []discovery.Target, clients []AgentClient) map[string][]*targetgroup.Group {
	all := maps.Clone(fixed)
	known := map[string]bool{}
	for job := range agentJobs(clients) {
		own := all[job]
		for _, g := range own {
			for _, t := range g.Targets {
				known[string(t[model.AddressLabel])] = true
			}
		}
		all[job] = own[:len(own):len(own)] // appending copies it
	}
	for _, a := range agents {
		if known[a.Address] {
			continue
		}
		labels := model.LabelSet{numberLabel: model.LabelValue(a.Address)}
		if a.TLS {
			labels[model.SchemeLabel] = "https"
		}
		for name, value := range a.Labels {
			labels[model.LabelName(name)] = model.LabelValue(value)
		}
		labels[model.JobLabel] = jobLabel
		job := jobOf(a.Address, clients)
		all[job] = append(all[job], &targetgroup.Group{
			Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(a.Address)}}, Labels: labels, Source: a.Address,
		})
	}
	return all
}

// targetsOf returns the number of targets.
func targetsOf(groups map[string][]*targetgroup.Group) (n int) {
	for _, list := range groups {
		for _, g := range list {
			n += len(g.Targets)
		}
	}
	return n
}

// known removes the targets that are no longer scraped, and divides the memory among the others.
func (b *seriesLimiter) known(groups map[string][]*targetgroup.Group) {
	numbers := map[string]bool{}
	for _, list := range groups {
		for _, g := range list {
			numbers[string(g.Labels[numberLabel])] = true
		}
	}
	b.accounts.divide(targetsOf(groups))
	b.mu.Lock()
	defer b.mu.Unlock()
	gone := func(number string) bool { return !numbers[number] }
	maps.DeleteFunc(b.caches, func(number string, _ int) bool { return gone(number) })
	maps.DeleteFunc(b.discard, func(number string, _ bool) bool { return gone(number) })
}

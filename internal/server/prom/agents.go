// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"iter"
	"path"
	"strconv"
)

// AgentClient is the HTTP client for some agents.
type AgentClient struct {
	Pattern string // of host:port, as in path.Match; empty for all agents that no pattern matches
	File    string // in the format of Prometheus' http_config
}

// agentJobs returns the scrape jobs of agents and the files of their HTTP clients. In Prometheus each job has one
// client. The job without a pattern always exists.
func agentJobs(clients []AgentClient) iter.Seq2[string, string] {
	return func(yield func(job, file string) bool) {
		others := ""
		for i, c := range clients {
			if c.Pattern == "" {
				others = c.File
			} else if !yield(jobAgents+strconv.Itoa(i+1), c.File) {
				return
			}
		}
		yield(jobLabel, others)
	}
}

// jobOf returns the scrape job of an agent.
func jobOf(address string, clients []AgentClient) string {
	for i, c := range clients {
		if ok, err := path.Match(c.Pattern, address); c.Pattern != "" && ok && err == nil {
			return jobAgents + strconv.Itoa(i+1)
		}
	}
	return jobLabel
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"os"

	"github.com/teescope/teescope/internal/lib/config"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/server/cluster"
	"github.com/teescope/teescope/internal/server/discovery"
	"github.com/teescope/teescope/internal/server/prom"
)

// discovery returns the finder of agents, which runs with the server, or nil.
func (p *program) discovery() *discovery.Finder {
	c := p.Config
	if len(c.Discovery) == 0 {
		return nil
	}
	var sources []discovery.Source
	for _, d := range c.Discovery {
		sources = append(sources, discovery.Source{Kind: d.Kind, Where: d.Where})
	}
	finder := discovery.New(discovery.Options{Sources: sources, ClientConfig: c.DiscoveryConfigFile, Getenv: os.Getenv, Log: p.Log.With("part", "discovery")})
	p.collectors = append(p.collectors, finder)
	return finder
}

// cluster adds data of Kubernetes about pods and nodes.
func (p *program) cluster() {
	if c := p.Config.Kubernetes; c.Pods {
		of := cluster.New(cluster.Options{Labels: c.Labels, Getenv: os.Getenv, Log: p.Log.With("part", "kubernetes")})
		p.collectors = append(p.collectors, of)
		p.add(of)
	}
}

// agentClients returns the HTTP clients for agents.
func agentClients(c *config.Config) []prom.AgentClient {
	var all []prom.AgentClient
	for pattern, file := range c.TargetsConfigFile() {
		all = append(all, prom.AgentClient{Pattern: pattern, File: file})
	}
	return all
}

// remoteWrite returns the other receivers of the stored samples.
func remoteWrite(c *config.Config) prom.RemoteWrite {
	return prom.RemoteWrite{URLs: c.RemoteWrite.URLs, Config: c.RemoteWrite.ConfigFile, Labels: c.RemoteWrite.Labels, Protocol: c.RemoteWrite.Protocol}
}

// packs selects the histograms that this process gets from its agent as one line each: those that its database stores as one series.
// It returns nil for none.
func packs(c *config.Config) func(family string) bool {
	if c.RemoteWrite.Only {
		return nil
	}
	to := remoteWrite(c)
	return to.StoresAsNative
}

// stores returns the function that composes a process that scrapes: with a database, or with receivers only.
func (p *program) stores() func() error {
	if p.Config.RemoteWrite.Only {
		return p.forward
	}
	return p.server
}

// forward adds the forwarder, which sends the samples of agents and of this process to receivers. There is no database, so there
// is no page, no analysis and no alert.
func (p *program) forward() error {
	c := p.Config
	owner, err := privilege.FindAccount(c.Sandbox.User)
	if err != nil {
		return err
	}
	f := prom.NewForwarder(prom.Options{
		DataDir: c.DataDir, Owner: owner.UID, Interval: c.Interval, RetentionTime: c.Retention.Time, RetentionSize: c.Retention.Size, MemoryLimit: c.Memory.Limit,
		Targets: c.Targets, TargetsConfig: agentClients(c), Discovery: p.discovery(), RemoteWrite: remoteWrite(c),
		Self: http.HandlerFunc(p.self), Instance: p.host, Registry: p.own, Log: p.Log,
	})
	p.stored = true
	p.collectors = append(p.collectors, f)
	p.add(f)
	p.cluster()
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
)

// isNamed reports whether an instance is the one of --instance, by its name or its host.
func (o *adviseFlags) isNamed(instance string) bool {
	return instance == o.instance || query.Host(instance) == o.instance
}

// knowsMachine returns an error if the machine of --instance is none of those that have the workload.
func (o *adviseFlags) knowsMachine(all []engine.Limit) error {
	var machines []string
	for _, l := range all {
		if l.Instance != "" && !slices.Contains(machines, l.Instance) {
			machines = append(machines, l.Instance)
		}
	}
	if o.instance == "" || len(machines) == 0 || slices.ContainsFunc(machines, o.isNamed) {
		return nil
	}
	slices.Sort(machines)
	return fmt.Errorf("%s has no series of the workload %q on %q: use one of %s", o.Server, o.Workload, o.instance, strings.Join(machines[:min(len(machines), 10)], ", "))
}

// named returns the host of the machine that --instance names, or with --live that of this machine, or "" if there is none or several.
func (o *adviseFlags) named(all []engine.Limit) string {
	name := ""
	for _, l := range all {
		switch {
		case o.instance == "" && (!o.Live || !isHere(l.Instance)), o.instance != "" && !o.isNamed(l.Instance), query.Host(l.Instance) == name:
		case name != "":
			return ""
		default:
			name = query.Host(l.Instance)
		}
	}
	return name
}

// elsewhere returns the machine that has the workload, if that is another one than this, or "" if it may be this one. A Prometheus server
// on this machine may have the series of many.
func (o *adviseFlags) elsewhere(all []engine.Limit) string {
	name := ""
	for _, l := range all {
		switch {
		case o.instance != "" && !o.isNamed(l.Instance):
		case l.Instance == "" || isHere(l.Instance):
			return ""
		default:
			name = l.Instance
		}
	}
	return name
}

// isHere reports whether an instance is on this machine: by the name of the host, with its domain or without, or by its address.
func isHere(instance string) bool {
	host := query.Host(instance)
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		addresses, err := net.InterfaceAddrs()
		return ip.IsLoopback() || err != nil || slices.ContainsFunc(addresses, func(a net.Addr) bool {
			own, err := netip.ParsePrefix(a.String())
			return err == nil && own.Addr() == ip.Unmap()
		})
	}
	this, err := os.Hostname()
	short := func(name string) string { return strings.ToLower(strings.SplitN(name, ".", 2)[0]) }
	return err != nil || host == "localhost" || short(host) == short(this)
}

// onMachine returns the findings about the workload on one machine: that of --instance, or with --live this one. Workloads of several
// machines may have one name, and a finding about one machine does not apply to another.
func (o *adviseFlags) onMachine(all []analysis.Finding) ([]analysis.Finding, error) {
	var machines []string
	for _, f := range all {
		if f.Instance != "" && !slices.Contains(machines, f.Instance) {
			machines = append(machines, f.Instance)
		}
	}
	slices.Sort(machines)
	host, _ := os.Hostname() // without a name, none is equal
	this := func(instance string) bool {
		switch {
		case o.instance != "":
			return o.isNamed(instance)
		case o.Live:
			return query.Host(instance) == host
		}
		return len(machines) == 1
	}
	switch {
	case len(machines) == 0 || slices.ContainsFunc(machines, this):
	case o.instance == "" && len(machines) == 1 && loopback(o.Server):
		return all, nil // of this machine, under another name
	case o.instance == "":
		return nil, fmt.Errorf("%s has findings about the workload %q on %d machines, and none is known to be the right one: name it with --instance, one of %s",
			o.Server, o.Workload, len(machines), strings.Join(machines[:min(len(machines), 10)], ", "))
	}
	return slices.DeleteFunc(slices.Clone(all), func(f analysis.Finding) bool { return f.Instance != "" && !this(f.Instance) }), nil
}

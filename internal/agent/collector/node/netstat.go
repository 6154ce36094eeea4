// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// netstatWanted is node_exporter's default for --collector.netstat.fields.
var netstatWanted = lazy.Regexp(`^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts|TCPOFOQueue|TCPRcvQDrop)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$`)

var netstatKnown = strings.Fields(`
	Icmp6_InErrors Icmp6_InMsgs Icmp6_OutMsgs Icmp_InErrors Icmp_InMsgs Icmp_OutMsgs Ip6_InOctets Ip6_OutOctets
	IpExt_InOctets IpExt_OutOctets Ip_Forwarding TcpExt_ListenDrops TcpExt_ListenOverflows TcpExt_SyncookiesFailed
	TcpExt_SyncookiesRecv TcpExt_SyncookiesSent TcpExt_TCPOFOQueue TcpExt_TCPRcvQDrop TcpExt_TCPSynRetrans TcpExt_TCPTimeouts
	Tcp_ActiveOpens Tcp_CurrEstab Tcp_InErrs Tcp_InSegs Tcp_OutRsts Tcp_OutSegs Tcp_PassiveOpens Tcp_RetransSegs
	Udp6_InDatagrams Udp6_InErrors Udp6_NoPorts Udp6_OutDatagrams Udp6_RcvbufErrors Udp6_SndbufErrors Udp_InDatagrams
	Udp_InErrors Udp_NoPorts Udp_OutDatagrams Udp_RcvbufErrors Udp_SndbufErrors UdpLite6_InErrors UdpLite_InErrors`)

func newNetstat(o Options) part {
	f := newFields(netstatKnown, netstatWanted(), func(key string) *metric.Desc {
		return untyped("node_netstat_"+key, fmt.Sprintf("Statistic %s.", strings.Replace(key, "_", "", 1)),
			"/proc/net/netstat, snmp and snmp6")
	})
	return part{"netstat", f.known, func(_ context.Context, emit func(prometheus.Metric)) error {
		var (
			all    []field
			failed []error
		)
		for _, name := range []string{"net/netstat", "net/snmp"} {
			data, err := readFile(o.net(), name)
			some, parseErr := parseNetstat(data)
			all, failed = append(all, some...), append(failed, err, parseErr)
		}
		data, err := readFile(o.net(), "net/snmp6")
		if errors.Is(err, os.ErrNotExist) {
			err = nil // a kernel without IPv6
		}
		some, parseErr := parseSNMP6(data)
		all, failed = append(all, some...), append(failed, err, parseErr)
		f.emit(unique(all), emit)
		return errors.Join(failed...)
	}}
}

// parseNetstat reads pairs of lines: "Tcp: A B" and "Tcp: 1 2" become Tcp_A 1 and Tcp_B 2.
func parseNetstat(data []byte) ([]field, error) {
	var (
		all   []field
		bad   error
		names []string
	)
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		protocol, colon := strings.CutSuffix(names[0], ":")
		if !colon || words[0] != names[0] || len(words) != len(names) {
			bad = fmt.Errorf("not a line of names and values: %.80q", line)
			names = words // this may be the line of names
			continue
		}
		for i := 1; i < len(words); i++ {
			name := protocol + "_" + names[i]
			v, err := number(words[i])
			if err == nil && !isName(name) {
				err = fmt.Errorf("no name: %.80q", name)
			}
			if err != nil {
				bad = err
				continue
			}
			all = append(all, field{name, v})
		}
		names = nil
	}
	return all, bad
}

// parseSNMP6 reads lines of a name and a value; Ip6InOctets becomes Ip6_InOctets.
func parseSNMP6(data []byte) ([]field, error) {
	pairs, err := parsePairs(data)
	var all []field
	for _, p := range pairs {
		if i := strings.IndexByte(p.name, '6'); i >= 0 {
			all = append(all, field{p.name[:i+1] + "_" + p.name[i+1:], p.value})
		}
	}
	return all, err
}

// socketsKnown are the values in /proc/net/sockstat and sockstat6 (net/ipv4/proc.c, net/ipv6/proc.c).
var socketsKnown = strings.Fields(`
	FRAG6_inuse FRAG6_memory FRAG_inuse FRAG_memory RAW6_inuse RAW_inuse TCP6_inuse TCP_alloc TCP_inuse TCP_mem
	TCP_mem_bytes TCP_orphan TCP_tw UDP6_inuse UDPLITE6_inuse UDPLITE_inuse UDP_inuse UDP_mem UDP_mem_bytes`)

func newSockstat(o Options) part {
	const origin = "/proc/net/sockstat and sockstat6"
	used := gauge("node_sockstat_sockets_used", "sockets", "Number of IPv4 sockets in use.", origin)
	f := newFields(socketsKnown, nil, func(name string) *metric.Desc {
		protocol, state, _ := strings.Cut(name, "_")
		return gauge("node_sockstat_"+name, socketUnit(state), fmt.Sprintf("Number of %s sockets in state %s.", protocol, state), origin)
	})
	one := func(s *procfs.NetSockstat, names once, emit func(prometheus.Metric)) {
		if s.Used != nil && names.isNew("used") {
			emit(used.Value(float64(*s.Used)))
		}
		for _, p := range s.Protocols {
			for state, v := range socketStates(p) {
				name := p.Protocol + "_" + state
				if !isName(name) || !names.isNew(name) {
					continue
				}
				if d := f.of(name); d != nil {
					emit(d.Value(v))
				}
			}
		}
	}
	return part{"sockstat", append([]*metric.Desc{used}, f.known...), func(_ context.Context, emit func(prometheus.Metric)) error {
		proc, err := procfs.NewFS(o.net())
		if err != nil {
			return err
		}
		var failed []error
		names := once{}
		for _, read := range []func() (*procfs.NetSockstat, error){proc.NetSockstat, proc.NetSockstat6} {
			s, err := read()
			switch {
			case err == nil:
				one(s, names, emit)
			case !errors.Is(err, os.ErrNotExist): // the file is missing on a kernel without this version of IP
				failed = append(failed, err)
			}
		}
		return errors.Join(failed...)
	}}
}

func socketUnit(state string) string {
	switch state {
	case "mem":
		return "pages"
	case "mem_bytes", "memory":
		return "bytes"
	}
	return "sockets"
}

// socketStates returns the states of a protocol with their values.
func socketStates(p procfs.NetSockstatProtocol) map[string]float64 {
	states := map[string]float64{"inuse": float64(p.InUse)}
	for state, v := range map[string]*int{"orphan": p.Orphan, "tw": p.TW, "alloc": p.Alloc, "mem": p.Mem, "memory": p.Memory} {
		if v != nil {
			states[state] = float64(*v)
		}
	}
	if p.Mem != nil {
		states["mem_bytes"] = float64(*p.Mem * os.Getpagesize())
	}
	return states
}

func newSoftnet(o Options) part {
	const file = "/proc/net/softnet_stat"
	c := func(name, unit, help string) *metric.Desc {
		return counter("node_softnet_"+name, unit, help, file, "cpu")
	}
	var (
		processed = c("processed_total", "packets", "Number of processed packets.")
		dropped   = c("dropped_total", "packets", "Number of dropped packets.")
		squeezed  = c("times_squeezed_total", "times", "Number of times processing packets ran out of quota.")
		collision = c("cpu_collision_total", "collisions", "Number of collision occur while obtaining device lock while transmitting.")
		rps       = c("received_rps_total", "times", "Number of times cpu woken up received_rps.")
		flowLimit = c("flow_limit_count_total", "times", "Number of times flow limit has been reached.")
		backlog   = gauge("node_softnet_backlog_len", "packets", "Softnet backlog status.", file, "cpu")
	)
	return part{"softnet", []*metric.Desc{processed, dropped, squeezed, collision, rps, flowLimit, backlog},
		func(_ context.Context, emit func(prometheus.Metric)) error {
			proc, err := procfs.NewFS(o.net())
			if err != nil {
				return err
			}
			all, err := proc.NetSoftnetStat()
			if err != nil {
				return err
			}
			cpus := once{}
			for _, s := range all {
				cpu := strconv.FormatUint(uint64(s.Index), 10)
				if !cpus.isNew(cpu) {
					continue
				}
				emit(processed.Value(float64(s.Processed), cpu))
				emit(dropped.Value(float64(s.Dropped), cpu))
				emit(squeezed.Value(float64(s.TimeSqueezed), cpu))
				emit(collision.Value(float64(s.CPUCollision), cpu))
				emit(rps.Value(float64(s.ReceivedRps), cpu))
				emit(flowLimit.Value(float64(s.FlowLimitCount), cpu))
				emit(backlog.Value(float64(s.SoftnetBacklogLen), cpu))
			}
			return nil
		}}
}

func newARP(o Options) part {
	entries := gauge("node_arp_entries", "entries", "ARP entries by device.", "/proc/net/arp", "device")
	return part{"arp", []*metric.Desc{entries}, func(_ context.Context, emit func(prometheus.Metric)) error {
		data, err := readFile(o.net(), "net/arp")
		if err != nil {
			return orNoData(err)
		}
		for device, n := range parseARP(data) {
			emit(entries.Value(float64(n), device))
		}
		return nil
	}}
}

// parseARP counts the lines of /proc/net/arp by device, its last column.
func parseARP(data []byte) map[string]int {
	_, body, _ := strings.Cut(string(data), "\n")
	entries := map[string]int{}
	for line := range strings.Lines(body) {
		if words := strings.Fields(line); len(words) >= 6 {
			entries[text.UTF8(words[len(words)-1])]++
		}
	}
	return entries
}

func newConntrack(o Options) part {
	const dir = "/proc/sys/net/netfilter/"
	entries := gauge("node_nf_conntrack_entries", "entries", "Number of currently allocated flow entries for connection tracking.", dir+"nf_conntrack_count")
	limit := gauge("node_nf_conntrack_entries_limit", "entries", "Maximum size of connection tracking table.", dir+"nf_conntrack_max")
	return part{"conntrack", []*metric.Desc{entries, limit}, func(_ context.Context, emit func(prometheus.Metric)) error {
		if o.Net != "" { // the file is about the network of the reader
			return errNoData
		}
		v, err := readNumber(o.Proc, "sys/net/netfilter/nf_conntrack_count")
		if err != nil {
			return orNoData(err)
		}
		emit(entries.Value(v))
		if v, err = readNumber(o.Proc, "sys/net/netfilter/nf_conntrack_max"); err == nil {
			emit(limit.Value(v))
		}
		return orNoData(err)
	}}
}

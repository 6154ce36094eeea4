// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// newNetdev returns the part for network traffic. node_exporter uses netlink. /proc/net/dev has the same
// numbers, which the kernel adds up as node_exporter does (net/core/net-procfs.c).
func newNetdev(o Options) part {
	const file = "/proc/net/dev"
	count := func(key, unit, origin string) *metric.Desc {
		return counter("node_network_"+key+"_total", unit, fmt.Sprintf("Network device statistic %s.", key), origin, "device")
	}
	columns := []struct {
		desc *metric.Desc
		get  func(*procfs.NetDevLine) uint64
	}{
		{count("receive_bytes", "bytes", file), func(l *procfs.NetDevLine) uint64 { return l.RxBytes }},
		{count("receive_packets", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxPackets }},
		{count("receive_errs", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxErrors }},
		{count("receive_drop", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxDropped }},
		{count("receive_fifo", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxFIFO }},
		{count("receive_frame", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxFrame }},
		{count("receive_compressed", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxCompressed }},
		{count("receive_multicast", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.RxMulticast }},
		{count("transmit_bytes", "bytes", file), func(l *procfs.NetDevLine) uint64 { return l.TxBytes }},
		{count("transmit_packets", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.TxPackets }},
		{count("transmit_errs", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.TxErrors }},
		{count("transmit_drop", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.TxDropped }},
		{count("transmit_fifo", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.TxFIFO }},
		{count("transmit_colls", "collisions", file), func(l *procfs.NetDevLine) uint64 { return l.TxCollisions }},
		{count("transmit_carrier", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.TxCarrier }},
		{count("transmit_compressed", "packets", file), func(l *procfs.NetDevLine) uint64 { return l.TxCompressed }},
	}
	// Only netlink and sysfs have this counter.
	noHandler := count("receive_nohandler", "packets", "/sys/class/net/*/statistics/rx_nohandler")
	families := []*metric.Desc{noHandler}
	for _, c := range columns {
		families = append(families, c.desc)
	}
	return part{"netdev", families, func(_ context.Context, emit func(prometheus.Metric)) error {
		proc, err := procfs.NewFS(o.net())
		if err != nil {
			return err
		}
		lines, err := proc.NetDev()
		seen := map[string]bool{}
		for name, line := range lines {
			device := text.UTF8(name)
			if seen[device] { // two names that are not UTF-8 have become equal
				continue
			}
			seen[device] = true
			for _, c := range columns {
				emit(c.desc.Value(float64(c.get(&line)), device))
			}
			if v, err := readNumber(o.Sys, "class/net", name, "statistics/rx_nohandler"); err == nil {
				emit(noHandler.Value(v, device))
			}
		}
		return err
	}}
}

// property is a number in a file of a network device's directory.
type property struct {
	file string
	desc *metric.Desc
}

func netProperties() []property {
	const dir = "/sys/class/net/*/"
	g := func(name, unit, file string) property {
		return property{file, gauge("node_network_"+name, unit, fmt.Sprintf("Network device property: %s.", name), dir+file, "device")}
	}
	c := func(name, file string) property {
		return property{file, counter("node_network_"+name, "changes", fmt.Sprintf("Network device property: %s.", name), dir+file, "device")}
	}
	return []property{
		g("address_assign_type", "", "addr_assign_type"),
		g("carrier", "", "carrier"),
		c("carrier_changes_total", "carrier_changes"),
		c("carrier_up_changes_total", "carrier_up_count"),
		c("carrier_down_changes_total", "carrier_down_count"),
		g("device_id", "", "dev_id"),
		g("dormant", "", "dormant"),
		g("flags", "", "flags"),
		g("iface_id", "", "ifindex"),
		g("iface_link", "", "iflink"),
		g("iface_link_mode", "", "link_mode"),
		g("mtu_bytes", "bytes", "mtu"),
		g("name_assign_type", "", "name_assign_type"),
		g("net_dev_group", "", "netdev_group"),
		g("speed_bytes", "bytes", "speed"),
		g("transmit_queue_length", "packets", "tx_queue_len"),
		g("protocol_type", "", "type"),
	}
}

// netclass reads the directories of network devices. It reads only some of about 45 files in each.
type netclass struct {
	dir        string
	up, info   *metric.Desc
	properties []property
}

func newNetclass(o Options) part {
	n := &netclass{
		dir: filepath.Join(o.Sys, "class/net"),
		up:  gauge("node_network_up", "", "Value is 1 if operstate is 'up', 0 otherwise.", "/sys/class/net/*/operstate", "device"),
		info: info("node_network_info", "Non-numeric data from /sys/class/net/<iface>, value is always 1.", "/sys/class/net/*/",
			"device", "address", "broadcast", "duplex", "operstate", "adminstate", "ifalias"),
		properties: netProperties(),
	}
	families := []*metric.Desc{n.up, n.info}
	for _, p := range n.properties {
		families = append(families, p.desc)
	}
	return part{"netclass", families, func(_ context.Context, emit func(prometheus.Metric)) error {
		devices, err := os.ReadDir(n.dir)
		if err != nil {
			return orNoData(err)
		}
		var failed []error
		seen := map[string]bool{}
		for _, device := range devices {
			name := text.UTF8(device.Name())
			if device.Type().IsRegular() || seen[name] { // bonding_masters is a file
				continue
			}
			seen[name] = true
			failed = append(failed, n.collect(device.Name(), emit))
		}
		return errors.Join(failed...)
	}}
}

func (n *netclass) collect(name string, emit func(prometheus.Metric)) error {
	// The directory is opened once, because its path has a link and several levels.
	dir := hostfs.At(n.dir)
	device, err := dir.OpenDir(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the device was removed meanwhile
	}
	if err != nil {
		return err
	}
	defer device.Close()
	var failed []error
	word := func(file string) string {
		s, err := readWord(device, file)
		if err != nil {
			failed = append(failed, fmt.Errorf("in %s: %w", dir.Path(name), err))
		}
		return text.UTF8(s)
	}
	operstate := word("operstate")
	if operstate == "" {
		return errors.Join(failed...) // the device was removed meanwhile
	}
	label, up, admin := text.UTF8(name), 0.0, "unknown"
	if operstate == "up" {
		up = 1
	}
	emit(n.up.Value(up, label))
	for _, p := range n.properties {
		s := word(p.file)
		v, err := strconv.ParseInt(s, 0, 64)
		if err != nil {
			continue // the device does not have this property
		}
		switch p.file {
		case "flags":
			admin = adminState(v)
		case "speed":
			// The unit is megabits. -1 means that the speed is unknown. node_exporter emits -125000 then.
			v = v * 1000 * 1000 / 8
		}
		emit(p.desc.Value(float64(v), label))
	}
	emit(n.info.Value(1, label, word("address"), word("broadcast"), word("duplex"), operstate, admin, word("ifalias")))
	return errors.Join(failed...)
}

// adminState reads IFF_UP (include/uapi/linux/if.h).
func adminState(flags int64) string {
	if flags&1 != 0 {
		return "up"
	}
	return "down"
}

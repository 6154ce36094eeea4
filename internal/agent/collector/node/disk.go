// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs/blockdevice"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// disksIgnored is node_exporter's default: partitions, and devices without data of their own.
var disksIgnored = lazy.Regexp(`^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`)

const (
	sector       = 512    // bytes, regardless of the device's sector size (Documentation/block/stat.rst)
	tick         = 1000.0 // ticks per second
	diskHeadings = 3      // columns before the counts: major, minor and name
)

// ataProperty is a number in udev's database about an ATA disk.
type ataProperty struct {
	name string
	desc *metric.Desc
}

type disk struct {
	opts   Options
	counts []*metric.Desc // in the order of the file's columns

	info, filesystemInfo, mapperInfo *metric.Desc
	ata                              []ataProperty
}

func newDisk(o Options) part {
	const file, udev = "/proc/diskstats", "/run/udev/data"
	count := func(name, unit, help string) *metric.Desc {
		return counter("node_disk_"+name, unit, help, file, "device")
	}
	d := &disk{
		opts: o,
		counts: []*metric.Desc{
			count("reads_completed_total", "reads", "The total number of reads completed successfully."),
			count("reads_merged_total", "reads", "The total number of reads merged."),
			count("read_bytes_total", "bytes", "The total number of bytes read successfully."),
			count("read_time_seconds_total", "seconds", "The total number of seconds spent by all reads."),
			count("writes_completed_total", "writes", "The total number of writes completed successfully."),
			count("writes_merged_total", "writes", "The number of writes merged."),
			count("written_bytes_total", "bytes", "The total number of bytes written successfully."),
			count("write_time_seconds_total", "seconds", "This is the total number of seconds spent by all writes."),
			gauge("node_disk_io_now", "operations", "The number of I/Os currently in progress.", file, "device"),
			count("io_time_seconds_total", "seconds", "Total seconds spent doing I/Os."),
			count("io_time_weighted_seconds_total", "seconds", "The weighted # of seconds spent doing I/Os."),
			count("discards_completed_total", "discards", "The total number of discards completed successfully."),
			count("discards_merged_total", "discards", "The total number of discards merged."),
			count("discarded_sectors_total", "sectors", "The total number of sectors discarded successfully."),
			count("discard_time_seconds_total", "seconds", "This is the total number of seconds spent by all discards."),
			count("flush_requests_total", "requests", "The total number of flush requests completed successfully."),
			count("flush_requests_time_seconds_total", "seconds", "This is the total number of seconds spent by all flush requests."),
		},
		info: info("node_disk_info", "Info of /sys/block/<block_device>.", file+"; "+udev+"; /sys/block/*/queue/rotational",
			"device", "major", "minor", "path", "wwn", "model", "serial", "revision", "rotational"),
		filesystemInfo: info("node_disk_filesystem_info", "Info about disk filesystem.", udev, "device", "type", "usage", "uuid", "version"),
		mapperInfo:     info("node_disk_device_mapper_info", "Info about disk device mapper.", udev, "device", "name", "uuid", "vg_name", "lv_name", "lv_layer"),
		ata: []ataProperty{
			{"ID_ATA_WRITE_CACHE", gauge("node_disk_ata_write_cache", "", "ATA disk has a write cache.", udev, "device")},
			{"ID_ATA_WRITE_CACHE_ENABLED", gauge("node_disk_ata_write_cache_enabled", "", "ATA disk has its write cache enabled.", udev, "device")},
			{"ID_ATA_ROTATION_RATE_RPM", gauge("node_disk_ata_rotation_rate_rpm", "", "ATA disk rotation rate in RPMs (0 for SSDs).", udev, "device")},
		},
	}
	families := append([]*metric.Desc{d.info, d.filesystemInfo, d.mapperInfo}, d.counts...)
	for _, one := range d.ata {
		families = append(families, one.desc)
	}
	return part{"diskstats", families, d.collect}
}

func (d *disk) collect(_ context.Context, emit func(prometheus.Metric)) error {
	fs, err := blockdevice.NewFS(d.opts.Proc, d.opts.Sys)
	if err != nil {
		return err
	}
	// Values that were read before an error are emitted.
	all, err := fs.ProcDiskstats()
	seen := map[string]bool{}
	for i := range all {
		name := text.UTF8(all[i].DeviceName)
		if disksIgnored().MatchString(name) || seen[name] {
			continue
		}
		seen[name] = true
		for i, v := range diskCounts(&all[i]) {
			emit(d.counts[i].Value(v, name))
		}
		rotational := "0" // also for devices without a queue, as in node_exporter
		if v, err := fs.SysBlockDeviceRotational(name); err == nil && v == 1 {
			rotational = "1"
		}
		d.emitUdev(&all[i], name, rotational, emit)
	}
	return err
}

// diskCounts returns the kernel's columns: 11 before Linux 4.18, 15 before 5.5, 17 since.
func diskCounts(s *blockdevice.Diskstats) []float64 {
	all := []float64{
		float64(s.ReadIOs), float64(s.ReadMerges), float64(s.ReadSectors) * sector, float64(s.ReadTicks) / tick,
		float64(s.WriteIOs), float64(s.WriteMerges), float64(s.WriteSectors) * sector, float64(s.WriteTicks) / tick,
		float64(s.IOsInProgress), float64(s.IOsTotalTicks) / tick, float64(s.WeightedIOTicks) / tick,
		float64(s.DiscardIOs), float64(s.DiscardMerges), float64(s.DiscardSectors), float64(s.DiscardTicks) / tick,
		float64(s.FlushRequestsCompleted), float64(s.TimeSpentFlushing) / tick,
	}
	return all[:min(max(s.IoStatsCount-diskHeadings, 0), len(all))]
}

// emitUdev emits the data in udev's database about a device. Without udev it emits only the device numbers.
func (d *disk) emitUdev(s *blockdevice.Diskstats, name, rotational string, emit func(prometheus.Metric)) {
	major, minor := strconv.FormatUint(uint64(s.MajorNumber), 10), strconv.FormatUint(uint64(s.MinorNumber), 10)
	data, _ := readFile(d.opts.RootFS, "run/udev/data", fmt.Sprintf("b%s:%s", major, minor))
	p := parseUdev(data)
	emit(d.info.Value(1, name, major, minor, p["ID_PATH"], p["ID_WWN"], p["ID_MODEL"],
		first(p["SCSI_IDENT_SERIAL"], p["ID_SERIAL_SHORT"], p["ID_SERIAL"]), p["ID_REVISION"], rotational))
	if p["ID_FS_TYPE"] != "" {
		emit(d.filesystemInfo.Value(1, name, p["ID_FS_TYPE"], p["ID_FS_USAGE"], p["ID_FS_UUID"], p["ID_FS_VERSION"]))
	}
	if p["DM_NAME"] != "" {
		emit(d.mapperInfo.Value(1, name, p["DM_NAME"], p["DM_UUID"], p["DM_VG_NAME"], p["DM_LV_NAME"], p["DM_LV_LAYER"]))
	}
	if p["ID_ATA"] == "" {
		return
	}
	for _, one := range d.ata {
		if v, err := strconv.ParseUint(p[one.name], 10, 32); err == nil {
			emit(one.desc.Value(float64(v), name))
		}
	}
}

// parseUdev reads the properties of a device: the lines "E:NAME=value" of udev's database.
func parseUdev(data []byte) map[string]string {
	properties := map[string]string{}
	for line := range strings.Lines(string(data)) {
		property, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "E:")
		if !ok {
			continue
		}
		if name, value, ok := strings.Cut(property, "="); ok {
			properties[name] = text.UTF8(value)
		}
	}
	return properties
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

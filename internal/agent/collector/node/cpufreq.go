// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"

	"github.com/teescope/teescope/internal/lib/metric"
)

// frequenciesEvery is the interval of reading frequencies. Minimum and maximum hardly ever change. Before Linux 5.18
// reading /proc/cpuinfo interrupts every CPU.
const frequenciesEvery = time.Minute

// frequency reads the maximum and minimum frequency of the CPUs from their driver. Without a driver it reads
// /proc/cpuinfo, which has the rate of the time-stamp counter in a virtual machine.
type frequency struct {
	opts    Options
	now     func() time.Time
	read    time.Time
	samples []prometheus.Metric // of the last reading
	failed  error

	most, least, current *metric.Desc
}

func newFrequency(o Options, k kernel) part {
	const driver = "/sys/devices/system/cpu/cpu*/cpufreq/"
	f := &frequency{
		opts: o, now: k.now,
		most:    gauge("node_cpu_frequency_max_hertz", "hertz", "Maximum CPU thread frequency in hertz.", driver+"cpuinfo_max_freq", "cpu"),
		least:   gauge("node_cpu_frequency_min_hertz", "hertz", "Minimum CPU thread frequency in hertz.", driver+"cpuinfo_min_freq", "cpu"),
		current: gauge("node_cpu_frequency_hertz", "hertz", "CPU frequency in hertz from /proc/cpuinfo.", "/proc/cpuinfo", "package", "core", "cpu"),
	}
	return part{"cpufreq", []*metric.Desc{f.most, f.least, f.current}, f.collect}
}

func (f *frequency) collect(_ context.Context, emit func(prometheus.Metric)) error {
	if now := f.now(); f.read.IsZero() || now.Sub(f.read).Abs() >= frequenciesEvery {
		f.read, f.samples, f.failed = now, nil, errNoData // also when reading panics
		f.failed = f.readAll()
	}
	for _, m := range f.samples {
		emit(m)
	}
	return f.failed
}

func (f *frequency) readAll() error {
	sys, err := sysfs.NewFS(f.opts.Sys)
	if err != nil {
		return err
	}
	cpus, err := sys.CPUs()
	if err != nil {
		return err
	}
	for _, cpu := range cpus {
		for file, family := range map[string]*metric.Desc{"cpuinfo_max_freq": f.most, "cpuinfo_min_freq": f.least} {
			if kHz, err := readNumber(string(cpu), "cpufreq", file); err == nil {
				f.samples = append(f.samples, family.Value(1000*kHz, cpu.Number()))
			}
		}
	}
	if len(f.samples) > 0 {
		return nil
	}
	return f.readCPUInfo()
}

// readCPUInfo reads frequencies on machines without a driver, such as most virtual machines.
func (f *frequency) readCPUInfo() error {
	proc, err := procfs.NewFS(f.opts.Proc)
	if err != nil {
		return err
	}
	all, err := proc.CPUInfo()
	if err != nil {
		return orNoData(err)
	}
	seen := once{}
	for _, cpu := range all {
		number := strconv.FormatUint(uint64(cpu.Processor), 10)
		_, errPackage := strconv.ParseUint(cpu.PhysicalID, 10, 32)
		_, errCore := strconv.ParseUint(cpu.CoreID, 10, 32)
		if hertz := 1e6 * cpu.CPUMHz; hertz > 0 && !notFinite(hertz) && errPackage == nil && errCore == nil && seen.isNew(number) {
			f.samples = append(f.samples, f.current.Value(hertz, cpu.PhysicalID, cpu.CoreID, number))
		}
	}
	if len(f.samples) == 0 {
		return errNoData
	}
	return nil
}

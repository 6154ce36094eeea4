// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"

	"github.com/teescope/teescope/internal/lib/metric"
)

// cpuModes are the columns of /proc/stat. The last two are the parts of user and nice for guests.
var cpuModes = [...]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "user", "nice"}

const (
	modeIdle   = 3
	modeSteal  = 7
	guestModes = 8 // from here on
	// idleReset is the minimum decrease of the idle time when a CPU was unplugged and plugged in again. It may decrease
	// by less because of how the kernel computes idle and iowait (NO_HZ).
	idleReset = 3.0
)

type cpuTimes [len(cpuModes)]float64

// stat reads /proc/stat once for the parts cpu and stat, because reading it is expensive with many CPUs and
// interrupts.
type stat struct {
	opts Options
	now  procfs.Stat
	read bool
	held map[int64]cpuTimes

	seconds, guest, online, isolated *metric.Desc
	coreThrottles, packageThrottles  *metric.Desc

	interrupts, switches, forks *metric.Desc
	boot, running, blocked      *metric.Desc
}

// newStat returns the parts cpu and stat, which must run in this order.
func newStat(o Options) (cpu, rest part) {
	const stats, devices = "/proc/stat", "/sys/devices/system/cpu/"
	s := &stat{
		opts:     o,
		seconds:  counter("node_cpu_seconds_total", "seconds", "Seconds the CPUs spent in each mode.", stats, "cpu", "mode"),
		guest:    counter("node_cpu_guest_seconds_total", "seconds", "Seconds the CPUs spent in guests (VMs) for each mode.", stats, "cpu", "mode"),
		online:   gauge("node_cpu_online", "", "CPUs that are online and being scheduled.", devices+"cpu*/online", "cpu"),
		isolated: gauge("node_cpu_isolated", "", "Whether each core is isolated, information from /sys/devices/system/cpu/isolated.", devices+"isolated", "cpu"),
		coreThrottles: counter("node_cpu_core_throttles_total", "times", "Number of times this CPU core has been throttled.",
			devices+"cpu*/thermal_throttle/core_throttle_count", "package", "core"),
		packageThrottles: counter("node_cpu_package_throttles_total", "times", "Number of times this CPU package has been throttled.",
			devices+"cpu*/thermal_throttle/package_throttle_count", "package"),
		interrupts: counter("node_intr_total", "interrupts", "Total number of interrupts serviced.", stats),
		switches:   counter("node_context_switches_total", "switches", "Total number of context switches.", stats),
		forks:      counter("node_forks_total", "forks", "Total number of forks.", stats),
		boot:       gauge("node_boot_time_seconds", "seconds", "Node boot time, in unixtime.", stats),
		running:    gauge("node_procs_running", "processes", "Number of processes in runnable state.", stats),
		blocked:    gauge("node_procs_blocked", "processes", "Number of processes blocked waiting for I/O to complete.", stats),
	}
	cpu = part{"cpu", []*metric.Desc{s.seconds, s.guest, s.online, s.isolated, s.coreThrottles, s.packageThrottles}, s.collectCPU}
	rest = part{"stat", []*metric.Desc{s.interrupts, s.switches, s.forks, s.boot, s.running, s.blocked}, s.collectRest}
	return cpu, rest
}

func (s *stat) collectCPU(_ context.Context, emit func(prometheus.Metric)) error {
	err := s.readStat()
	if err == nil {
		s.held = hold(s.held, s.now.CPU)
		known := !s.opts.Confidential || stolen(s.held)
		for id, times := range s.held {
			cpu := strconv.FormatInt(id, 10)
			for i, v := range times {
				if i == modeSteal && !known {
					continue
				}
				d := s.seconds
				if i >= guestModes {
					d = s.guest
				}
				emit(d.Value(v, cpu, cpuModes[i]))
			}
		}
	}
	sys, sysErr := sysfs.NewFS(s.opts.Sys)
	if sysErr != nil {
		return errors.Join(err, sysErr)
	}
	return errors.Join(err, s.collectIsolated(sys, emit), s.collectDevices(sys, emit))
}

// stolen reports whether a CPU has had steal time. All values are zero if the guest has lost no time since it started, or if its
// host does not report steal time. Most confidential guests have such a host.
func stolen(cpus map[int64]cpuTimes) bool {
	for _, times := range cpus {
		if times[modeSteal] > 0 {
			return true
		}
	}
	return false
}

func (s *stat) readStat() error {
	s.read = false
	proc, err := procfs.NewFS(s.opts.Proc)
	if err != nil {
		return err
	}
	if s.now, err = proc.Stat(); err != nil {
		return err
	}
	s.read = true
	return nil
}

// hold prevents each time from decreasing, except when the CPU was unplugged in between. It deletes removed CPUs, and
// those whose times are not finite.
func hold(held map[int64]cpuTimes, now map[int64]procfs.CPUStat) map[int64]cpuTimes {
	next := make(map[int64]cpuTimes, len(now))
	for id, c := range now {
		times := cpuTimes{c.User, c.Nice, c.System, c.Idle, c.Iowait, c.IRQ, c.SoftIRQ, c.Steal, c.Guest, c.GuestNice}
		if slices.ContainsFunc(times[:], notFinite) {
			continue
		}
		if before := held[id]; before[modeIdle]-times[modeIdle] < idleReset {
			for i := range times {
				times[i] = max(times[i], before[i])
			}
		}
		next[id] = times
	}
	return next
}

func (s *stat) collectIsolated(sys sysfs.FS, emit func(prometheus.Metric)) error {
	isolated, err := sys.IsolatedCPUs()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading which CPUs are isolated: %w", err)
	}
	cpus := once{}
	for _, id := range isolated {
		if cpu := strconv.Itoa(int(id)); cpus.isNew(cpu) {
			emit(s.isolated.Value(1, cpu))
		}
	}
	return nil
}

// collectDevices reads each CPU's directory.
func (s *stat) collectDevices(sys sysfs.FS, emit func(prometheus.Metric)) error {
	cpus, err := sys.CPUs()
	if err != nil || len(cpus) == 0 {
		return err
	}
	// If the first CPU cannot be unplugged, the family is absent for all CPUs, as in node_exporter.
	_, err = cpus[0].Online()
	online := !errors.Is(err, os.ErrNotExist)
	cores, packages := map[[2]float64]bool{}, map[float64]bool{}
	for _, cpu := range cpus {
		if online {
			v := 0.0
			if on, err := cpu.Online(); err == nil && on {
				v = 1
			}
			emit(s.online.Value(v, cpu.Number()))
		}
		s.throttles(string(cpu), cores, packages, emit)
	}
	return nil
}

// throttles emits the counters of a CPU's core and package. Hyper-threads share them, so each is emitted once.
// Some kernels and CPUs have no such files.
func (s *stat) throttles(dir string, cores map[[2]float64]bool, packages map[float64]bool, emit func(prometheus.Metric)) {
	throttle := filepath.Join(dir, "thermal_throttle")
	core, coreErr := readNumber(throttle, "core_throttle_count")
	pack, packErr := readNumber(throttle, "package_throttle_count")
	if coreErr != nil && packErr != nil {
		return
	}
	packageID, err := readNumber(dir, "topology", "physical_package_id")
	if err != nil {
		return
	}
	coreID, err := readNumber(dir, "topology", "core_id")
	if err != nil {
		return
	}
	label := func(id float64) string { return strconv.FormatFloat(id, 'f', -1, 64) }
	if key := [2]float64{packageID, coreID}; coreErr == nil && !cores[key] {
		cores[key] = true
		emit(s.coreThrottles.Value(core, label(packageID), label(coreID)))
	}
	if packErr == nil && !packages[packageID] {
		packages[packageID] = true
		emit(s.packageThrottles.Value(pack, label(packageID)))
	}
}

// collectRest emits the rest of the file that collectCPU has read.
func (s *stat) collectRest(_ context.Context, emit func(prometheus.Metric)) error {
	if !s.read {
		return errNoData // the part cpu has returned the error
	}
	emit(s.interrupts.Value(float64(s.now.IRQTotal)))
	emit(s.switches.Value(float64(s.now.ContextSwitches)))
	emit(s.forks.Value(float64(s.now.ProcessCreated)))
	emit(s.boot.Value(float64(s.now.BootTime)))
	emit(s.running.Value(float64(s.now.ProcessesRunning)))
	emit(s.blocked.Value(float64(s.now.ProcessesBlocked)))
	return nil
}

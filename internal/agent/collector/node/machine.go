// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

func newLoad(o Options) part {
	const file = "/proc/loadavg"
	load1 := gauge("node_load1", "", "1m load average.", file)
	load5 := gauge("node_load5", "", "5m load average.", file)
	load15 := gauge("node_load15", "", "15m load average.", file)
	return part{"loadavg", []*metric.Desc{load1, load5, load15}, func(_ context.Context, emit func(prometheus.Metric)) error {
		proc, err := procfs.NewFS(o.Proc)
		if err != nil {
			return err
		}
		load, err := proc.LoadAvg()
		if err != nil {
			return err
		}
		for d, v := range map[*metric.Desc]float64{load1: load.Load1, load5: load.Load5, load15: load.Load15} {
			if notFinite(v) {
				return fmt.Errorf("reading loadavg: a load of %v", v)
			}
			emit(d.Value(v))
		}
		return nil
	}}
}

func newFilefd(o Options) part {
	const file = "/proc/sys/fs/file-nr"
	allocated := gauge("node_filefd_allocated", "files", "File descriptor statistics: allocated.", file)
	maximum := gauge("node_filefd_maximum", "files", "File descriptor statistics: maximum.", file)
	return part{"filefd", []*metric.Desc{allocated, maximum}, func(_ context.Context, emit func(prometheus.Metric)) error {
		data, err := readFile(o.Proc, "sys/fs/file-nr")
		if err != nil {
			return err
		}
		have, most, err := parseFileNr(data)
		if err != nil {
			return err
		}
		emit(allocated.Value(have))
		emit(maximum.Value(most))
		return nil
	}}
}

// parseFileNr reads "allocated 0 maximum". The second number has been zero since Linux 2.6.
func parseFileNr(data []byte) (allocated, maximum float64, err error) {
	words := strings.Fields(string(data))
	if len(words) != 3 {
		return 0, 0, fmt.Errorf("reading file-nr: expected 3 words, got %d", len(words))
	}
	if allocated, err = number(words[0]); err != nil {
		return 0, 0, fmt.Errorf("reading file-nr: %w", err)
	}
	if maximum, err = number(words[2]); err != nil {
		return 0, 0, fmt.Errorf("reading file-nr: %w", err)
	}
	return allocated, maximum, nil
}

func newEntropy(o Options) part {
	const dir = "/proc/sys/kernel/random/"
	available := gauge("node_entropy_available_bits", "bits", "Bits of available entropy.", dir+"entropy_avail")
	pool := gauge("node_entropy_pool_size_bits", "bits", "Bits of entropy pool.", dir+"poolsize")
	return part{"entropy", []*metric.Desc{available, pool}, func(_ context.Context, emit func(prometheus.Metric)) error {
		var failed []error
		for d, file := range map[*metric.Desc]string{available: "entropy_avail", pool: "poolsize"} {
			v, err := readNumber(o.Proc, "sys/kernel/random", file)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			emit(d.Value(v))
		}
		return errors.Join(failed...)
	}}
}

func newUname(k kernel) part {
	about := info("node_uname_info", "Labeled system information as provided by the uname system call.", "uname(2)",
		"sysname", "release", "version", "machine", "nodename", "domainname")
	return part{"uname", []*metric.Desc{about}, func(_ context.Context, emit func(prometheus.Metric)) error {
		var u unix.Utsname
		if err := k.uname(&u); err != nil {
			return fmt.Errorf("calling uname: %w", err)
		}
		word := func(b [65]byte) string { return text.UTF8(unix.ByteSliceToString(b[:])) }
		emit(about.Value(1, word(u.Sysname), word(u.Release), word(u.Version), word(u.Machine), word(u.Nodename), word(u.Domainname)))
		return nil
	}}
}

func newTime(o Options, k kernel) part {
	const dir = "/sys/devices/system/clocksource/clocksource*/"
	now := gauge("node_time_seconds", "seconds", "System time in seconds since epoch (1970).", "clock_gettime(2)")
	zone := gauge("node_time_zone_offset_seconds", "seconds", "System time zone offset in seconds.", "the agent's time zone", "time_zone")
	available := info("node_time_clocksource_available_info", "Available clocksources read from '/sys/devices/system/clocksource'.",
		dir+"available_clocksource", "device", "clocksource")
	current := info("node_time_clocksource_current_info", "Current clocksource read from '/sys/devices/system/clocksource'.",
		dir+"current_clocksource", "device", "clocksource")
	return part{"time", []*metric.Desc{now, zone, available, current}, func(_ context.Context, emit func(prometheus.Metric)) error {
		t := k.now()
		name, offset := t.Zone()
		emit(now.Value(float64(t.UnixNano()) / float64(time.Second)))
		emit(zone.Value(float64(offset), text.UTF8(name)))
		sys, err := sysfs.NewFS(o.Sys)
		if err != nil {
			return err
		}
		sources, err := sys.ClockSources()
		if err != nil {
			return fmt.Errorf("reading the clock sources: %w", err)
		}
		for _, s := range sources {
			names := once{}
			for _, one := range s.Available {
				if name := text.UTF8(one); names.isNew(name) {
					emit(available.Value(1, s.Name, name))
				}
			}
			emit(current.Value(1, s.Name, text.UTF8(s.Current)))
		}
		return nil
	}}
}

const (
	timeError = 5      // TIME_ERROR: the clock is not synchronised (adjtimex(2))
	staNano   = 0x2000 // STA_NANO: nanoseconds instead of microseconds
	scaledPPM = 65536e6
)

// timexValue is one number of struct timex.
type timexValue struct {
	desc *metric.Desc
	get  func(t *unix.Timex, second float64) float64 // second is one second in the unit of offset and jitter
}

func timexValues() []timexValue {
	g := func(name, unit, help string) *metric.Desc {
		return gauge("node_timex_"+name, unit, help, "adjtimex(2)")
	}
	c := func(name, help string) *metric.Desc {
		return counter("node_timex_"+name, "times", help, "adjtimex(2)")
	}
	const micro = 1e6
	return []timexValue{
		{g("offset_seconds", "seconds", "Time offset in between local system and reference clock."), func(t *unix.Timex, s float64) float64 { return float64(t.Offset) / s }},
		{g("frequency_adjustment_ratio", "", "Local clock frequency adjustment."), func(t *unix.Timex, _ float64) float64 { return 1 + float64(t.Freq)/scaledPPM }},
		{g("maxerror_seconds", "seconds", "Maximum error in seconds."), func(t *unix.Timex, _ float64) float64 { return float64(t.Maxerror) / micro }},
		{g("estimated_error_seconds", "seconds", "Estimated error in seconds."), func(t *unix.Timex, _ float64) float64 { return float64(t.Esterror) / micro }},
		{g("status", "", "Value of the status array bits."), func(t *unix.Timex, _ float64) float64 { return float64(t.Status) }},
		{g("loop_time_constant", "", "Phase-locked loop time constant."), func(t *unix.Timex, _ float64) float64 { return float64(t.Constant) }},
		{g("tick_seconds", "seconds", "Seconds between clock ticks."), func(t *unix.Timex, _ float64) float64 { return float64(t.Tick) / micro }},
		{g("pps_frequency_hertz", "hertz", "Pulse per second frequency."), func(t *unix.Timex, _ float64) float64 { return float64(t.Ppsfreq) / scaledPPM }},
		{g("pps_jitter_seconds", "seconds", "Pulse per second jitter."), func(t *unix.Timex, s float64) float64 { return float64(t.Jitter) / s }},
		{g("pps_shift_seconds", "seconds", "Pulse per second interval duration."), func(t *unix.Timex, _ float64) float64 { return float64(t.Shift) }},
		{g("pps_stability_hertz", "hertz", "Pulse per second stability, average of recent frequency changes."), func(t *unix.Timex, _ float64) float64 { return float64(t.Stabil) / scaledPPM }},
		{c("pps_jitter_total", "Pulse per second count of jitter limit exceeded events."), func(t *unix.Timex, _ float64) float64 { return float64(t.Jitcnt) }},
		{c("pps_calibration_total", "Pulse per second count of calibration intervals."), func(t *unix.Timex, _ float64) float64 { return float64(t.Calcnt) }},
		{c("pps_error_total", "Pulse per second count of calibration errors."), func(t *unix.Timex, _ float64) float64 { return float64(t.Errcnt) }},
		{c("pps_stability_exceeded_total", "Pulse per second count of stability limit exceeded events."), func(t *unix.Timex, _ float64) float64 { return float64(t.Stbcnt) }},
		{g("tai_offset_seconds", "seconds", "International Atomic Time (TAI) offset."), func(t *unix.Timex, _ float64) float64 { return float64(t.Tai) }},
	}
}

func newTimex(k kernel) part {
	synced := gauge("node_timex_sync_status", "", "Is clock synchronized to a reliable server (1 = yes, 0 = no).", "adjtimex(2)")
	values := timexValues()
	families := []*metric.Desc{synced}
	for _, v := range values {
		families = append(families, v.desc)
	}
	return part{"timex", families, func(_ context.Context, emit func(prometheus.Metric)) error {
		var t unix.Timex // without a mode adjtimex only reads
		state, err := k.adjtimex(&t)
		switch {
		case errors.Is(err, unix.EPERM):
			return errNoData // the seccomp profiles of some containers deny the call
		case err != nil:
			return fmt.Errorf("reading the clock's discipline: %w", err)
		}
		second := 1e6
		if t.Status&staNano != 0 {
			second = 1e9
		}
		sync := 1.0
		if state == timeError {
			sync = 0
		}
		emit(synced.Value(sync))
		for _, v := range values {
			emit(v.desc.Value(v.get(&t, second)))
		}
		return nil
	}}
}

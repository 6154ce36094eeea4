// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/metric"
)

const (
	microsecond = 1e-6
	nanosecond  = 1e-9
)

func newPressure(o Options) part {
	p := func(name, help, file string) *metric.Desc {
		return counter("node_pressure_"+name+"_seconds_total", "seconds", help, "/proc/pressure/"+file)
	}
	// some means that at least one task waits, and full that all tasks that could run wait. The full line of cpu is
	// always zero for the machine, and irq has only this line (Documentation/accounting/psi.rst).
	resources := []struct {
		file       string
		some, full *metric.Desc
	}{
		{"cpu", p("cpu_waiting", "Total time in seconds that processes have waited for CPU time.", "cpu"), nil},
		{"io", p("io_waiting", "Total time in seconds that processes have waited due to IO congestion.", "io"),
			p("io_stalled", "Total time in seconds no process could make progress due to IO congestion.", "io")},
		{"memory", p("memory_waiting", "Total time in seconds that processes have waited for memory.", "memory"),
			p("memory_stalled", "Total time in seconds no process could make progress due to memory congestion.", "memory")},
		{"irq", nil, p("irq_stalled", "Total time in seconds no process could make progress due to IRQ congestion.", "irq")},
	}
	var families []*metric.Desc
	for _, r := range resources {
		for _, d := range []*metric.Desc{r.some, r.full} {
			if d != nil {
				families = append(families, d)
			}
		}
	}
	return part{"pressure", families, func(_ context.Context, emit func(prometheus.Metric)) error {
		proc, err := procfs.NewFS(o.Proc)
		if err != nil {
			return err
		}
		var (
			failed []error
			found  bool
		)
		for _, r := range resources {
			s, err := proc.PSIStatsForResource(r.file)
			switch {
			case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.EOPNOTSUPP):
				continue // a kernel without it, or psi=0
			case err != nil:
				failed = append(failed, fmt.Errorf("reading the pressure on %s: %w", r.file, err))
				continue
			}
			found = true
			emitLine(r.some, s.Some, emit)
			emitLine(r.full, s.Full, emit)
		}
		if !found && len(failed) == 0 {
			return errNoData
		}
		return errors.Join(failed...)
	}}
}

func emitLine(d *metric.Desc, line *procfs.PSILine, emit func(prometheus.Metric)) {
	if d != nil && line != nil {
		emit(d.Value(float64(line.Total) * microsecond))
	}
}

func newSchedstat(o Options) part {
	const file = "/proc/schedstat"
	running := counter("node_schedstat_running_seconds_total", "seconds", "Number of seconds CPU spent running a process.", file, "cpu")
	waiting := counter("node_schedstat_waiting_seconds_total", "seconds", "Number of seconds spent by processing waiting for this CPU.", file, "cpu")
	slices := counter("node_schedstat_timeslices_total", "timeslices", "Number of timeslices executed by CPU.", file, "cpu")
	return part{"schedstat", []*metric.Desc{running, waiting, slices}, func(_ context.Context, emit func(prometheus.Metric)) error {
		proc, err := procfs.NewFS(o.Proc)
		if err != nil {
			return err
		}
		s, err := proc.Schedstat()
		if err != nil {
			return orNoData(err)
		}
		if len(s.CPUs) == 0 { // procfs returns no error of reading
			return errors.New("reading /proc/schedstat: no CPU found")
		}
		cpus := once{}
		for _, cpu := range s.CPUs {
			if !cpus.isNew(cpu.CPUNum) {
				continue
			}
			emit(running.Value(float64(cpu.RunningNanoseconds)*nanosecond, cpu.CPUNum))
			emit(waiting.Value(float64(cpu.WaitingNanoseconds)*nanosecond, cpu.CPUNum))
			emit(slices.Value(float64(cpu.RunTimeslices), cpu.CPUNum))
		}
		return nil
	}}
}

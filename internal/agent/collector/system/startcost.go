// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/sampling"
)

const (
	// startMost is the total time of measurements at the start. No measurement begins after it.
	startMost = 25 * time.Millisecond
	// loopMost is the time for which a loop runs, and loopRuns the maximum number of runs in it. A run is short. So the shortest
	// of several runs contains neither an interrupt nor another thread, even on a busy machine.
	loopMost, loopRuns    = 800 * time.Microsecond, 40
	callsOfRun, pageOfRun = 100, 32
	// roundsMost is the time for which two threads wake each other. Fewer than leastRounds rounds are not significant.
	roundsMost, leastRounds = 2 * time.Millisecond, 50
)

// startCosts measures the cost of events at the start: their time in a loop, without the probe and with it. The cost differs
// by a factor of five between kernels, processors, and machines on which another tracer sees the same events.
type startCosts struct {
	log           *slog.Logger
	spent         time.Duration            // by measuring
	cpu           int                      // that loops run on; -1 if not known
	without, with [sampling.Events]float64 // shortest time of an event in nanoseconds; 0 if not known
	costs         sampling.EventCosts
}

func newStartCosts(log *slog.Logger) *startCosts {
	return &startCosts{log: log, cpu: currentCPU()}
}

// currentCPU returns the CPU of the calling thread, or -1.
func currentCPU() int {
	var cpu uint32
	if _, _, errno := syscall.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}

// startLoops are the probes whose cost is measured. An event takes the shortest time of several runs.
var startLoops = map[string]struct {
	event sampling.Event
	loop  func(cpu int) float64
}{
	"syscall":         {sampling.Syscall, callLoop},
	"page_fault_user": {sampling.PageFault, faultLoop},
	"context_switch":  {sampling.ContextSwitch, switchLoop},
}

// attached attaches a probe, and measures its events before and after.
func (m *startCosts) attached(k *kernelSide, p bpf.Probe) (bpf.Status, error) {
	m.run(p.Name, &m.without)
	status, err := k.object.Attach(p)
	if err == nil {
		m.run(p.Name, &m.with)
	}
	return status, err
}

// run runs the loop of a probe's event, and keeps the shortest time of all its runs.
func (m *startCosts) run(probe string, least *[sampling.Events]float64) {
	l, ok := startLoops[probe]
	first := ok && l.event == sampling.Syscall && least[l.event] == 0 // most of the cost, and measured in a millisecond
	if !ok || m.spent > startMost && !first {
		return
	}
	defer m.spend(time.Now())
	if ns := l.loop(m.cpu); ns > 0 && (least[l.event] == 0 || ns < least[l.event]) {
		least[l.event] = ns
	}
}

func (m *startCosts) spend(since time.Time) { m.spent += time.Since(since) }

// end measures again without the frequent probes and with them, so that a processor that changes its speed disturbs less.
// Then it measures the programs alone. The probes are attached afterwards, as before. No count was reported until now.
// Switches are not measured again, because their program has to see all of them.
func (m *startCosts) end(k *kernelSide) {
	var again []attachedProbe
	for _, s := range k.status {
		if (s.Probe == "syscall" || s.Probe == "page_fault_user") && s.Attached() {
			again = append(again, attachedProbe{s.Probe, s.Program, s.Mechanism})
		}
	}
	if m.spent < startMost/2 {
		for _, p := range again {
			k.switches.off(p)
		}
		for _, p := range again {
			m.run(p.probe, &m.without)
		}
		began := time.Now()
		for _, p := range again {
			k.switches.on(p)
		}
		m.spend(began)
		for _, p := range again {
			m.run(p.probe, &m.with)
		}
	}
	m.measurePrograms(k)
	for _, e := range []sampling.Event{sampling.ContextSwitch, sampling.PageFault, sampling.Syscall} {
		hidden := 0.0
		if e == sampling.Syscall {
			m.costs.ScaleOthers()
			if filtered() {
				hidden = m.costs.SlowPath()
			}
		}
		if m.with[e] > 0 && !m.costs.Measured(e, m.without[e], m.with[e]+hidden) {
			m.log.Info("the measured cost of a probe is not plausible: a constant is used", "event", e.String(),
				"without", nanoseconds(m.without[e]), "with", nanoseconds(m.with[e]))
			m.without[e], m.with[e] = 0, 0
		}
	}
	attrs := []any{"took", m.spent.Round(time.Millisecond)}
	for e := range sampling.Events {
		attrs = append(attrs, e.String(), nanoseconds(m.costs.InLoop(e)), e.String()+"_measured", m.costs.Path[e] > 0)
	}
	m.log.Info("cost of counting one event", attrs...)
}

// filtered reports whether a filter of system calls confines the calling thread. Its calls never take the kernel's fast
// path. So the loop does not show that tracing makes other calls leave it.
func filtered() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err != nil || mode != 0
}

// measurePrograms lets the programs measure themselves while the loops run.
func (m *startCosts) measurePrograms(k *kernelSide) {
	from := k.runTimes()
	atomic.StoreUint64(&k.controls[0].Metering, 1)
	var ignored [sampling.Events]float64
	for name := range startLoops {
		for range 2 { // a thousand events
			m.run(name, &ignored)
		}
	}
	atomic.StoreUint64(&k.controls[0].Metering, 0)
	m.costs.Update(from, k.runTimes())
}

func nanoseconds(ns float64) time.Duration { return time.Duration(ns) }

// onCPU runs a function in a thread that stays on a CPU. The channel is closed at its end.
func onCPU(cpu int, f func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocks it, so the thread ends with the function
		if cpu >= 0 {
			var set unix.CPUSet
			set.Set(cpu)
			_ = unix.SchedSetaffinity(0, &set) // without it, times differ more
		}
		f()
	}()
	return done
}

func callLoop(cpu int) (ns float64) {
	<-onCPU(cpu, func() { ns = shortest(loopRuns, callsOfRun, makeCalls) })
	return ns
}

func makeCalls() time.Duration {
	began := time.Now()
	for range callsOfRun {
		_, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0)
	}
	return time.Since(began)
}

// shortest returns the time of one of n events in nanoseconds, in the shortest run.
func shortest(runs, n int, run func() time.Duration) float64 {
	least, end := run(), time.Now().Add(loopMost)
	for i := 1; i < runs && time.Now().Before(end); i++ {
		least = min(least, run())
	}
	return float64(least) / float64(n)
}

// faultLoop measures the first access to new pages.
func faultLoop(cpu int) (ns float64) {
	page := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, pageOfRun*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Munmap(memory) }() // fails only with wrong arguments
	if unix.Madvise(memory, unix.MADV_NOHUGEPAGE) != nil {
		return 0
	}
	failed := false
	<-onCPU(cpu, func() {
		ns = shortest(loopRuns, pageOfRun, func() time.Duration {
			failed = failed || unix.Madvise(memory, unix.MADV_DONTNEED) != nil
			began := time.Now()
			for i := 0; i < len(memory); i += page {
				memory[i] = 1
			}
			return time.Since(began)
		})
	})
	if failed {
		return 0
	}
	return ns
}

// switchLoop measures rounds of two threads that wake each other. A round has two switches. Other threads take part on a
// busy machine, so a low quantile of many rounds is compared.
func switchLoop(cpu int) float64 {
	there, back := [2]int{-1, -1}, [2]int{-1, -1}
	defer func() {
		for _, fd := range []int{there[0], back[0]} {
			_ = unix.Close(fd) // nothing was written to a file
		}
	}()
	if unix.Pipe2(there[:], unix.O_CLOEXEC) != nil || unix.Pipe2(back[:], unix.O_CLOEXEC) != nil {
		_ = unix.Close(there[1])
		_ = unix.Close(back[1])
		return 0
	}
	echo := onCPU(cpu, func() {
		for b := make([]byte, 1); answer(there[0], b) == 1; {
			_, _ = unix.Write(back[1], b)
		}
		_ = unix.Close(back[1]) // the other thread waits no longer
	})
	var rounds []time.Duration
	<-onCPU(cpu, func() {
		b := make([]byte, 1)
		for last, end := time.Now(), time.Now().Add(roundsMost); last.Before(end); {
			_, _ = unix.Write(there[1], b)
			if answer(back[0], b) != 1 {
				return
			}
			now := time.Now()
			rounds, last = append(rounds, now.Sub(last)), now
		}
	})
	_ = unix.Close(there[1]) // ends the other thread
	<-echo
	if len(rounds) < leastRounds {
		return 0
	}
	slices.Sort(rounds)
	return float64(rounds[len(rounds)/10]) / 2
}

// answer reads a byte.
func answer(fd int, b []byte) int {
	for {
		if n, err := unix.Read(fd, b); !errors.Is(err, unix.EINTR) {
			return n
		}
	}
}

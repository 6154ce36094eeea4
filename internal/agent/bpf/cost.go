// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"context"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Cost is the cost of one program. The kernel counts Runs and RunTime only while statistics are enabled
// (SampleCosts, or the sysctl kernel.bpf_stats_enabled), because counting costs as much as a cheap
// program.
type Cost struct {
	Program      string
	Instructions int // of the translated program, after dead code was removed
	Runs         uint64
	RunTime      time.Duration
	// Missed is the number of events at which the kernel did not run the program, because it was running on that CPU
	// already. It is always counted.
	Missed uint64
}

// Costs reads the cost of every attached program. Programs without information from the kernel are omitted. The first call
// takes longer, because it reads the size of each program, which the kernel returns with the code.
func (o *Object) Costs() []Cost {
	costs := make([]Cost, 0, len(o.programs))
	for i := range o.programs {
		p := &o.programs[i]
		if p.instructions == 0 && !p.measure() {
			continue
		}
		c := Cost{Program: p.Name, Instructions: p.instructions}
		if s, err := p.prog.Stats(); err == nil {
			c.Runs, c.RunTime, c.Missed = s.RunCount, s.Runtime, s.RecursionMisses
		}
		if h := o.hooks[p.Name]; h != nil {
			c.Missed += h.missed()
		}
		costs = append(costs, c)
	}
	return costs
}

// measure reads the size of the program. It returns false if the kernel does not provide it.
func (p *Program) measure() bool {
	info, err := p.prog.Info()
	if err != nil {
		return false
	}
	size, err := info.TranslatedSize()
	p.instructions = size / 8
	return err == nil && p.instructions > 0
}

// SampleCosts enables the kernel's statistics about runs of all eBPF programs for a duration. It needs
// CAP_SYS_ADMIN.
func SampleCosts(ctx context.Context, d time.Duration) error {
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		return fmt.Errorf("enabling eBPF run-time statistics: %w", err)
	}
	defer stats.Close()
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return nil
}

// MapMemory returns the kernel memory of each map in bytes. Maps without information from the kernel are omitted. The size
// of preallocated maps is read once, because it does not change.
func (o *Object) MapMemory() map[string]uint64 {
	if o.sizes == nil {
		o.sizes = map[string]uint64{}
	}
	sizes := make(map[string]uint64, len(o.maps))
	for name, m := range o.maps {
		if bytes, known := o.sizes[name]; known {
			sizes[name] = bytes
			continue
		}
		info, err := m.Info()
		if err != nil {
			continue
		}
		if bytes, ok := info.Memlock(); ok {
			sizes[name] = bytes
			if m.Flags()&unix.BPF_F_NO_PREALLOC == 0 {
				o.sizes[name] = bytes
			}
		}
	}
	return sizes
}

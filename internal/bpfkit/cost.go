// SPDX-License-Identifier: Apache-2.0

package bpfkit

import (
	"context"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Cost is what one program costs. Runs and RunTime count only while statistics are enabled
// (SampleCosts, or the sysctl kernel.bpf_stats_enabled), because counting costs as much as a cheap
// program does.
type Cost struct {
	Program      string
	Instructions int // of the translated program, after dead code was removed
	Runs         uint64
	RunTime      time.Duration
}

// Costs reads the cost of every attached program. A program whose figures the kernel does not give is left out.
func (o *Object) Costs() []Cost {
	var costs []Cost
	for _, p := range o.programs {
		info, err := p.prog.Info()
		if err != nil {
			continue
		}
		size, err := info.TranslatedSize()
		if err != nil {
			continue
		}
		c := Cost{Program: p.Name, Instructions: size / 8}
		if s, err := p.prog.Stats(); err == nil {
			c.Runs, c.RunTime = s.RunCount, s.Runtime
		}
		costs = append(costs, c)
	}
	return costs
}

// SampleCosts lets the kernel count and time the runs of all eBPF programs for a while. It needs
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

// MapMemory returns the kernel memory of each map in bytes. Maps whose size the kernel does not tell are left out.
func (o *Object) MapMemory() map[string]uint64 {
	sizes := map[string]uint64{}
	for name, m := range o.maps {
		info, err := m.Info()
		if err != nil {
			continue
		}
		if bytes, ok := info.Memlock(); ok {
			sizes[name] = bytes
		}
	}
	return sizes
}

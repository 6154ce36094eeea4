// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/service"
)

const (
	// groupsPerWorkload is the number of groups for each workload. A workload has several if its programs run in
	// several cgroups.
	groupsPerWorkload = 2
	// housekeeping is the interval of refreshing groups without scrapes.
	housekeeping = 10 * time.Second
)

// watch is the state of watching the in-tree driver. It is empty if there is no such driver.
type watch struct {
	kernel *kernelSide
	owners *owners
	last   time.Time // of the last refresh
	start  balance   // of allocated pages when the programs were attached
}

// Init attaches to the in-tree driver, if this machine has one. A failure does not end the agent: Collect reports
// it at each scrape.
func (b *Backend) Init(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.followModule(time.Now()); b.outside != nil || err != nil {
		return err // DCAP's driver has the device of the in-tree driver
	}
	if !b.hasDriver() {
		b.log.Debug("no SGX driver to watch")
		return nil
	}
	began := time.Now()
	if b.failed = b.start(); b.failed != nil {
		b.log.Warn("the SGX driver is not watched", "err", b.failed)
		return nil
	}
	for _, s := range b.watch.kernel.status {
		if !s.Attached() {
			b.log.Info("probe not attached", "probe", s.Probe, "reason", s.Reason)
		}
	}
	b.log.Info("the SGX driver is watched", "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// hasDriver reports whether there is a driver to watch.
func (b *Backend) hasDriver() bool {
	for _, node := range []string{"sgx_enclave", "sgx_vepc"} {
		if _, err := os.Stat(filepath.Join(b.opts.Roots.Dev, node)); err == nil {
			return true
		}
	}
	return false
}

func (b *Backend) start() error {
	s, err := sizesFor(b.opts)
	if err != nil {
		return err
	}
	k, err := load(s)
	if err != nil {
		return fmt.Errorf("watching the SGX driver: %w", err)
	}
	b.watch = watch{kernel: k, owners: newOwners(k, b.opts.MaxWorkloads, b.opts.Pods)}
	if err := b.refresh(time.Now()); err != nil {
		return err
	}
	b.watch.start, _ = b.watch.allocated()
	return nil
}

func sizesFor(o Options) (sizes, error) {
	cpus, err := bpf.CPUs()
	if err != nil {
		return sizes{}, err
	}
	symbols, err := readSymbols(o.Roots.Proc)
	if err != nil {
		return sizes{}, fmt.Errorf("looking for the SGX driver's variables: %w", err)
	}
	return sizes{
		cpus: cpus, groups: 1 + groupsPerWorkload*o.MaxWorkloads, controller: int32(cgroup.Naming(o.Cgroup)), symbols: symbols,
	}, nil
}

// refresh reads the driver's own records and updates the user side.
func (b *Backend) refresh(now time.Time) error {
	w := &b.watch
	w.last = now
	if err := w.kernel.look(); err != nil {
		return err
	}
	return w.owners.refresh(now)
}

// Run refreshes groups until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	service.Every(ctx, housekeeping, func() {
		if err := b.tend(time.Now()); err != nil {
			b.log.Warn("refreshing the SGX driver's figures", "err", err)
		}
	})
	return nil
}

func (b *Backend) tend(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.followModule(now); err != nil {
		return err
	}
	if b.watch.kernel == nil || now.Sub(b.watch.last) < housekeeping/2 {
		return nil
	}
	return b.refresh(now)
}

// Shutdown detaches from the driver.
func (b *Backend) Shutdown(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, k := range []*kernelSide{b.watch.kernel, b.outside.side()} {
		if k != nil {
			errs = append(errs, k.object.Close())
		}
	}
	b.watch, b.outside = watch{}, nil
	return errors.Join(errs...)
}

// monotonic returns the time of the clock that the kernel side uses.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails only if the arguments are wrong
	return time.Duration(t.Nano())
}

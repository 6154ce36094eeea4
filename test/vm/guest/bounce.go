// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

const (
	disk     = "/dev/vda"
	bounced  = "/sys/kernel/tracing/events/swiotlb/swiotlb_bounced/"
	poolFile = "/sys/kernel/debug/swiotlb/io_tlb_used"
)

// countAndBounce saves a boot.
func countAndBounce() error {
	if err := count(); err != nil {
		return err
	}
	return bounce()
}

// bounce reads a disk through bounce buffers: one request at a time, then more than there is room for (two requests of 512 KiB and their headers need more than 512 slots of 2 KiB), then one at a time
// again. After each it prints the agent's figures and those of others: the bytes that the program got, the disk's own
// count of requests, and the kernel's tracepoint.
func bounce() error {
	a, err := startAgent("agent")
	if err != nil {
		return err
	}
	if err := a.confined(); err != nil {
		return err
	}
	if err := os.WriteFile(bounced+"trigger", []byte("hist:keys=common_pid.execname:vals=size\n"), 0o644); err != nil {
		return err
	}
	for _, phase := range []struct{ name, block, threads, total string }{
		{"before", "65536", "1", "0"}, {"calm", "65536", "1", "16777216"}, {"exhausted", "524288", "16", "33554432"}, {"after", "65536", "1", "16777216"},
	} {
		out, err := exec.Command("/reader", phase.block, phase.threads, phase.total).Output()
		if err != nil {
			return fmt.Errorf("reading the disk, %s: %w", phase.name, err)
		}
		section(phase.name+" read", string(out))
		for name, file := range map[string]string{
			"stat": "/sys/block/vda/stat", "hist": bounced + "hist", "used": poolFile,
		} {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			section(phase.name+" "+name, string(text))
		}
		if err := a.metrics(phase.name, "teescope_bounce_", "teescope_workload_bounce_", "teescope_block_io_", "teescope_attribution_lost_total", "teescope_probe_attached", "teescope_collector_success"); err != nil {
			return err
		}
	}
	return a.stop()
}

// readDisk reads a disk without the page cache: BLOCK bytes at a time in THREADS threads, until all have read TOTAL bytes
// together. It prints how many bytes it got.
func readDisk(args []string) error {
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[i]); err != nil {
			return err
		}
	}
	block, threads, total := n[0], n[1], n[2]
	f, err := openDisk()
	if err != nil {
		return err
	}
	defer f.Close()
	var wait sync.WaitGroup
	got, errs := make([]int, threads), make([]error, threads)
	for t := range threads {
		wait.Go(func() {
			buf, err := syscall.Mmap(-1, 0, block, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			for at := t * block; err == nil && at < total; at += threads * block {
				var n int
				n, err = f.ReadAt(buf, int64(at))
				got[t] += n
			}
			errs[t] = err
		})
	}
	wait.Wait()
	sum := 0
	for t := range threads {
		if errs[t] != nil && errs[t] != io.EOF {
			return errs[t]
		}
		sum += got[t]
	}
	fmt.Println(sum)
	return nil
}

// openDisk waits for the disk.
func openDisk() (f *os.File, err error) {
	there := eventually("the disk is there", func() bool {
		f, err = os.OpenFile(disk, os.O_RDONLY|syscall.O_DIRECT, 0)
		return !errors.Is(err, fs.ErrNotExist)
	})
	return f, errors.Join(err, there)
}

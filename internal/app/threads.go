// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"
	"runtime"
)

// cpusPerThread and mostThreads limit the threads of an agent that run Go code at once: one for each eight CPUs, and as many as read
// counters at once. With more, each timer and each end of a read wakes a thread that finds nothing to do, and each garbage
// collection uses all idle CPUs.
const (
	cpusPerThread = 8
	mostThreads   = 8
)

// threadsFor returns that limit. It is not above the one of the Go runtime, which follows the CPU quota of the control group.
func threadsFor(cpus, allowed int) int { return min(max(1, cpus/cpusPerThread), mostThreads, allowed) }

// fewThreads sets this limit when the services before it are initialised: they measure costs with two threads. GOMAXPROCS in the
// environment takes precedence.
type fewThreads struct{}

// Name implements service.Service.
func (fewThreads) Name() string { return "threads" }

// Init implements service.Initializer.
func (fewThreads) Init(context.Context) error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(threadsFor(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	}
	return nil
}

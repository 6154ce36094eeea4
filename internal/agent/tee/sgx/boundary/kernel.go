// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/teescope/teescope/internal/agent/bpf"
)

// kernelSide is what runs in the kernel.
type kernelSide struct {
	object           *bpf.Object
	call, start, end *bpf.UserProbe
	returns          *bpf.UserProbe // of calls; nil where nothing is watched
	breakpoints      *bpf.Breakpoints
	closed           error // why there are none
	files            []fileState
	losses           []uint64
	exit             bpf.Status // of the hook at the end of threads
	threads          interface{ Open() (io.ReadCloser, error) }
}

// exitProbe hooks the end of a thread while its memory is still there. On a kernel that offers none of the
// ways, the counters of threads that are killed are those of the last look at them.
func exitProbe() bpf.Probe {
	return bpf.Probe{Name: "exit", Ways: []bpf.Way{
		{Program: "exit_tracepoint", Mechanism: bpf.TypedTracepoint, Target: "sched_process_exit"},
		{Program: "exit_fentry", Mechanism: bpf.Fentry, Target: "do_exit"},
		{Program: "exit_kprobe", Mechanism: bpf.Kprobe, Target: "do_exit"},
	}}
}

// load loads all programs while the privileges for it are there. None runs before a file is probed, but for
// the one at the end of threads.
func load(events, timing, entries bool) (k *kernelSide, err error) {
	o, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	k = &kernelSide{object: o}
	defer func() {
		o.Loaded()
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	if !timing {
		err = errors.Join(o.Resize("starts", 1), o.Resize("durations", 1))
	}
	if !entries {
		err = errors.Join(err, o.Resize("crossed", 1))
	}
	if err := errors.Join(err, o.CreateMaps()); err != nil {
		return nil, err
	}
	loadProbe := bpf.LoadUserProbe
	if events {
		loadProbe = bpf.LoadUserProbeEvents
	}
	probes := map[string]**bpf.UserProbe{"call": &k.call, "gramine_start": &k.start, "gramine_thread": &k.end}
	if timing {
		probes["call_return"] = &k.returns
	}
	for name, probe := range probes {
		if *probe, err = loadProbe(o, name); err != nil {
			return nil, err
		}
	}
	if entries {
		k.closed = k.loadBreakpoints()
	}
	if k.files, err = bpf.View[fileState](o, "files"); err != nil {
		return nil, err
	}
	if k.losses, err = bpf.View[uint64](o, "losses"); err != nil {
		return nil, err
	}
	if k.threads, err = o.Iterator("threads"); err != nil {
		return nil, err
	}
	k.exit, _ = o.Attach(exitProbe()) // the status says why not
	return k, nil
}

// loadBreakpoints loads what counts at breakpoints, and what follows who inherits them.
func (k *kernelSide) loadBreakpoints() (err error) {
	if k.breakpoints, err = bpf.LoadBreakpoints(k.object, "enclu"); err != nil {
		return err
	}
	for program, tracepoint := range map[string]string{"born": "sched_process_fork", "executed": "sched_process_exec"} {
		_, err := k.object.Attach(bpf.Probe{Name: program, Ways: []bpf.Way{
			{Program: program, Mechanism: bpf.TypedTracepoint, Target: tracepoint},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachCrossings calls f with how often each process has executed ENCLU in the vDSO.
func (k *kernelSide) eachCrossings(f func(uint32, crossings)) error {
	var tgid uint32
	var n crossings
	entries := k.object.Map("crossed").Iterate()
	for entries.Next(&tgid, &n) {
		f(tgid, n)
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading how often enclaves were entered: %w", err)
	}
	return nil
}

// crossingsOf returns what one process has counted; nil where it has no breakpoint.
func (k *kernelSide) crossingsOf(tgid uint32) (*crossings, error) {
	var n crossings
	err := k.object.Map("crossed").Lookup(tgid, &n)
	if bpf.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how often process %d has entered enclaves: %w", tgid, err)
	}
	return &n, nil
}

// eachCall calls f with every counter of calls.
func (k *kernelSide) eachCall(f func(callKey, uint64)) error {
	var key callKey
	var n uint64
	entries := k.object.Map("calls").Iterate()
	for entries.Next(&key, &n) {
		f(key, n)
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading the counters of calls: %w", err)
	}
	return nil
}

// eachDuration calls f with how long the calls of each site and process took.
func (k *kernelSide) eachDuration(f func(callKey, *duration)) error {
	var key callKey
	var d duration
	entries := k.object.Map("durations").Iterate()
	for entries.Next(&key, &d) {
		f(key, &d)
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("reading the durations of calls: %w", err)
	}
	return nil
}

// newTables returns the OCALL tables that were seen since the last time.
func (k *kernelSide) newTables(known func(tableKey) bool) ([]tableKey, error) {
	var key tableKey
	var zero uint64
	var found []tableKey
	entries := k.object.Map("tables").Iterate()
	for entries.Next(&key, &zero) {
		if !known(key) {
			found = append(found, key)
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("reading the OCALL tables: %w", err)
	}
	return found, nil
}

// takeEnded returns the threads that have ended since the last time.
func (k *kernelSide) takeEnded() (map[threadKey]endedThread, error) {
	var key threadKey
	var value endedThread
	taken := map[threadKey]endedThread{}
	entries := k.object.Map("ended").Iterate()
	for entries.Next(&key, &value) {
		taken[key] = value
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("reading the threads that have ended: %w", err)
	}
	for key := range taken {
		if err := k.remove("ended", key); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// liveThreads makes one pass over the threads of Gramine's processes.
func (k *kernelSide) liveThreads() ([]liveThread, error) {
	pass, err := k.threads.Open()
	if err != nil {
		return nil, fmt.Errorf("starting a pass over the threads: %w", err)
	}
	defer pass.Close()
	var threads []liveThread
	for {
		var t liveThread
		if err := binary.Read(pass, binary.LittleEndian, &t); errors.Is(err, io.EOF) {
			return threads, nil
		} else if err != nil {
			return nil, fmt.Errorf("passing over the threads: %w", err)
		}
		threads = append(threads, t)
	}
}

// forget removes counters of calls.
func (k *kernelSide) forget(calls []callKey) error {
	var errs []error
	for _, key := range calls {
		errs = append(errs, k.remove("calls", key))
	}
	return errors.Join(errs...)
}

// remove deletes an entry of a map, if it is there.
func (k *kernelSide) remove(name string, key any) error {
	if err := k.object.Map(name).Delete(key); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("removing an entry of %s: %w", name, err)
	}
	return nil
}

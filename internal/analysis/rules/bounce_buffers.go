// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// BounceBuffers names the rule of this file.
const BounceBuffers = "bounce-buffers"

// bounceUsers is the least share of the copied data of a class of devices that a workload must have to be named.
// Proposed.
const bounceUsers = 0.10

// bounceFails is the least rate of mappings that fail. A block device tries again when another request ends or after some
// milliseconds, and each try counts, so less than one in a second delays a thread for less than a hundredth of the time. Proposed.
const bounceFails = 1

// bounceStorage is the class of block devices.
const bounceStorage = "storage"

// Signals of this rule alone.
var (
	bounceFailuresSignal = engine.Signal{
		Name: "failures", Query: machinePerSecond("teescope_bounce_failures_total", "class"), Unit: "1/s",
		Help: "mappings for devices that found no room in the bounce buffers, by class of device",
	}
	bounceBytesSignal = engine.Signal{
		Name: "copied", Query: perSecond("teescope_workload_bounce_bytes_total", "class"), Unit: "bytes/s",
		Help: "data of the workload that is copied through bounce buffers, by class of device",
	}
	bounceAllSignal = engine.Signal{
		Name: "machine", Query: machinePerSecond("teescope_bounce_bytes_total", "class"), Unit: "bytes/s",
		Help: "data of the machine that is copied through bounce buffers, by class of device",
	}
	bouncePoolSignal = engine.Signal{
		Name: "pool", Query: "max by (instance) (teescope_bounce_pool_bytes)", Unit: "bytes", Help: "size of the bounce buffers",
	}
)

// What can be replaced in the configuration.
var (
	bounceShare    = engine.Threshold{Name: "share", Default: bounceUsers, Unit: "ratio", Help: "minimum share of the copied data that a workload must have to be named"}
	bounceFailures = engine.Threshold{Name: "failures", Default: bounceFails, Unit: "1/s", Help: "minimum rate of mappings that fail"}
)

func bounceBuffers() engine.Rule {
	return engine.Rule{
		Name: BounceBuffers, Title: "there is no room in the bounce buffers of this confidential machine",
		Code:       codelink.Calls,
		Thresholds: []engine.Threshold{bounceFailures, bounceShare},
		Signals:    []engine.Signal{bounceFailuresSignal, bounceBytesSignal, bounceAllSignal, bouncePoolSignal, ownIOFullSignal, stalledSignal},
		Judge:      judgeBounceBuffers,
		NotWhen: []string{
			"the device cannot reach the buffers: mappings then fail although there is room",
			"the tasks wait for the disk itself: the wait is not divided between it and the room in the buffers",
			"the failed mappings were those of another workload, which could copy less of its data for that reason",
		},
		Sources: []string{"Linux, kernel/dma/swiotlb.c: a mapping without room fails, and a block device waits for other requests to end"},
	}
}

// withoutRoom returns the classes of devices for which mappings fail, and whose data is to this share the workload's.
func withoutRoom(w engine.Workload, failures, share float64) (classes []string) {
	mine, all := w.By(bounceBytesSignal, "class"), w.By(bounceAllSignal, "class")
	for class, n := range w.By(bounceFailuresSignal, "class") {
		if n >= failures && mine[class] > 0 && all[class] > 0 && mine[class] >= share*all[class] {
			classes = append(classes, class)
		}
	}
	return classes
}

func judgeBounceBuffers(w engine.Workload) *engine.Verdict {
	failures, mine, all := w.By(bounceFailuresSignal, "class"), w.By(bounceBytesSignal, "class"), w.By(bounceAllSignal, "class")
	full := withoutRoom(w, w.LeastFor(bounceFailures), w.LeastFor(bounceShare))
	if len(full) == 0 {
		return nil
	}
	top := largest(failures, full...)
	v := &engine.Verdict{
		Severity: analysis.Medium, Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s mappings/s for %s devices find no room in the bounce buffers, and %s of the data that is copied through them is this workload's: its I/O waits",
			figure(failures[top]), top, text.Percent(min(1, mine[top]/all[top]))),
		Evidence: []string{bounceFailuresSignal.With("class", top), bounceBytesSignal.With("class", top), bounceAllSignal.With("class", top)},
		Advice: []string{
			"enlarge the buffers: boot with swiotlb=SLOTS, of 2 KiB each",
			"limit concurrent I/O: lower the queue depth of the program, and nr_requests and max_sectors_kb of the device",
		},
	}
	if size, known := w.Value(bouncePoolSignal); known && size > 0 {
		v.Cause += fmt.Sprintf(" (they have %s MiB)", figure(size/(1<<20)))
		v.Evidence = append(v.Evidence, bouncePoolSignal.Name)
	}
	if share, waits := diskWait(w); top == bounceStorage && waits && share >= w.Least(disksStall) {
		v.Cause += fmt.Sprintf("; all its tasks that have work wait for disks for %s of the time", text.Percent(share))
		v.Evidence = append(v.Evidence, ownIOFullSignal.Name, stalledSignal.Name)
		v.Gain = estimate.Amdahl("its disks, which it reaches through the bounce buffers", 0, share,
			"at best all of these waits are for room", "the workload always has work for its tasks")
		if analysis.SeverityOf(v.Gain, nil, 0).AtLeast(analysis.Medium) {
			v.Severity = "" // that of the wait
		}
	}
	return v
}

// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

// bounces are the figures of one phase. All except the first five come from other sources than the agent.
type bounces struct {
	read, written, mappings, failures, workload float64 // the agent's; bytes and mappings
	got                                         float64 // bytes that the program got in this phase
	requests, seconds                           float64 // that the disk has completed, and their time
	events, size                                float64 // of the kernel's tracepoint, which comes before there is room
	used                                        float64 // slots

	blocks // the agent's, of the program
}

// blocks are the agent's figures of a program's reads from the disk: their number, bytes and seconds.
type blocks struct{ n, bytes, took float64 }

// blocksOf reads the figures of the program's reads.
func blocksOf(f map[string]*dto.MetricFamily) (b blocks) {
	b.bytes = sum(f, "teescope_block_io_bytes_total", "workload", "reader", "operation", "read")
	for _, m := range f["teescope_block_io_latency_seconds"].GetMetric() {
		of := map[string]string{}
		for _, l := range m.Label {
			of[l.GetName()] = l.GetValue()
		}
		if of["workload"] == "reader" && of["operation"] == "read" {
			b.n, b.took = float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
		}
	}
	return b
}

// judge compares the reads of a phase, after an earlier one, with the disk's own count and time, and with what the program got.
// The disk reports its time in milliseconds, and reads the clock after the agent.
func (b bounces) judge(t *testing.T, name string, before bounces) {
	t.Helper()
	n, bytes, took := b.n-before.n, b.bytes-before.bytes, b.took-before.took
	requests, seconds := b.requests-before.requests, b.seconds-before.seconds
	t.Logf("%s: %v reads of %v bytes took %v s; the disk says %v in %v s", name, n, bytes, took, requests, seconds)
	if n != requests || bytes != b.got {
		t.Errorf("%s: the agent has %v reads of %v bytes, the disk %v, and the program got %v", name, n, bytes, requests, b.got)
	}
	if took <= 0 || took > seconds+0.001 {
		t.Errorf("%s: the reads took %v s, and the disk says %v", name, took, seconds)
	}
}

var histogramLine = regexp.MustCompile(`hitcount: +(\d+) +size: +(\d+)`)

// phase reads the figures of a phase.
func (r report) phase(t *testing.T, name string) bounces {
	t.Helper()
	f := r.exposition(t, name)
	b := bounces{
		read:     sum(f, "teescope_bounce_bytes_total", "direction", "from_device"),
		written:  sum(f, "teescope_bounce_bytes_total", "direction", "to_device"),
		mappings: sum(f, "teescope_bounce_mappings_total"),
		failures: sum(f, "teescope_bounce_failures_total"),
		workload: sum(f, "teescope_workload_bounce_bytes_total", "workload", "reader", "class", "storage"),
		got:      metrictest.Number(t, r[name+" read"]),
		requests: metrictest.Number(t, strings.Fields(r[name+" stat"])[0]),
		seconds:  metrictest.Number(t, strings.Fields(r[name+" stat"])[3]) / 1e3,
		blocks:   blocksOf(f),
		used:     metrictest.Number(t, r[name+" used"]),
	}
	for _, line := range histogramLine.FindAllStringSubmatch(r[name+" hist"], -1) {
		b.events += metrictest.Number(t, line[1])
		b.size += metrictest.Number(t, line[2])
	}
	if got := sum(f, "teescope_bounce_pool_used_bytes"); got != b.used*2048 {
		t.Errorf("%s: %v bytes of the pool are in use, want those of %v slots", name, got, b.used)
	}
	for _, class := range []string{"network", "accelerator", "other"} {
		if n := sum(f, "teescope_bounce_mappings_total", "class", class); n != 0 {
			t.Errorf("%s: %v mappings of class %s", name, n, class)
		}
	}
	return b
}

// since returns the differences of the counters.
func (b bounces) since(a bounces) bounces {
	return bounces{
		read: b.read - a.read, written: b.written - a.written, mappings: b.mappings - a.mappings, failures: b.failures - a.failures,
		workload: b.workload - a.workload, got: b.got, requests: b.requests - a.requests, events: b.events - a.events, size: b.size - a.size,
		used: b.used,
	}
}

// emptyDisk returns a file for a disk.
func emptyDisk(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// bounceBuffers judges a guest that has read a disk through bounce buffers, until they were exhausted and afterwards.
func bounceBuffers(t *testing.T, r report) {
	before := r.phase(t, "before")
	calm, exhausted, after := r.phase(t, "calm"), r.phase(t, "exhausted"), r.phase(t, "after")
	for name, b := range map[string]bounces{"calm": calm.since(before), "after": after.since(exhausted)} {
		t.Logf("%s: %+v", name, b)
		// virtio-blk maps the data and one byte of status of each request for the device to write.
		if b.got != 16<<20 || b.requests == 0 || b.read != b.got+b.requests {
			t.Errorf("%s: %v bytes were counted; the program got %v in %v requests", name, b.read, b.got, b.requests)
		}
		if b.events != b.mappings || b.size != b.read+b.written || b.failures != 0 {
			t.Errorf("%s: %v mappings of %v bytes and %v failures; the kernel says %v of %v", name, b.mappings, b.read+b.written, b.failures, b.events, b.size)
		}
		if b.workload != b.read+b.written {
			t.Errorf("%s: %v bytes belong to the program, want all %v", name, b.workload, b.read+b.written)
		}
	}
	calm.judge(t, "calm", before)
	exhausted.judge(t, "exhausted", calm)
	after.judge(t, "after", exhausted)
	if lost := sum(r.exposition(t, "after"), "teescope_attribution_lost_total", "what", "requests"); lost != 0 {
		t.Errorf("the workload of %v requests is not known", lost)
	}
	b := exhausted.since(calm)
	t.Logf("exhausted: %+v", b)
	if b.failures == 0 || b.failures+b.mappings != b.events {
		t.Errorf("%v mappings and %v failures; the kernel says %v in all", b.mappings, b.failures, b.events)
	}
	if b.got != 32<<20 || b.read < b.got+b.requests || b.read+b.written >= b.size {
		t.Errorf("%v bytes were counted; the program got %v, and %v were tried", b.read+b.written, b.got, b.size)
	}
	f := r.exposition(t, "after")
	if size, most := sum(f, "teescope_bounce_pool_bytes"), sum(f, "teescope_bounce_pool_used_max_bytes"); size != 512*2048 || f["teescope_bounce_pool_used_max_bytes"] != nil && (most < size/2 || most > size) {
		t.Errorf("at most %v bytes of a pool of %v were used", most, size)
	}
	if after.used > 0 {
		t.Errorf("%v slots are in use when idle", after.used)
	}
	if sum(f, "teescope_probe_attached", "probe", "cvm_bounced") != 1 || sum(f, "teescope_collector_success", "collector", "tee") != 1 {
		t.Error("the probe is not attached, or the collector fails")
	}
}

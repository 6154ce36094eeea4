// SPDX-License-Identifier: Apache-2.0

package nitro

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// Operations of enum virtio_vsock_op (linux/virtio_vsock.h).
const (
	opRequest, opResponse, opReset, opShutdown, opRW, opCredit = 1, 2, 3, 4, 5, 6
	here                                                       = 3 // the address of this machine
)

// injector runs the programs with the arguments of their tracepoints.
type injector struct {
	t              testing.TB
	k              *kernelSide
	sent, received func(cpu int, args ...uint64) error
}

func inject(t testing.TB) *injector {
	t.Helper()
	privilegetest.Alone(t)
	k, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.object.Close() })
	in := &injector{t: t, k: k}
	if in.sent, err = k.object.CallOn("vsock_sent"); err != nil {
		t.Fatal(err)
	}
	if in.received, err = k.object.CallOn("vsock_received"); err != nil {
		t.Fatal(err)
	}
	return in
}

// to sends a packet to a peer, and from receives one. type and flags are those of a stream.
func (in *injector) to(cid, op, length uint64) {
	in.t.Helper()
	if err := in.sent(-1, here, 1024, cid, 5000, length, 1, op, 0, 0); err != nil {
		in.t.Fatal(err)
	}
}

func (in *injector) from(cid, op, length uint64) {
	in.t.Helper()
	if err := in.received(-1, cid, 5000, here, 1024, length, 1, op, 0, 262144, 0); err != nil {
		in.t.Fatal(err)
	}
}

// emitted returns the values by family, address and direction.
func emitted(collect func(emit func(prometheus.Metric))) map[string]float64 {
	got := map[string]float64{}
	collect(func(m prometheus.Metric) {
		s := m.(*metric.Sample)
		got[strings.TrimPrefix(s.Of.Name, "teescope_")+" "+strings.Join(s.Labels, " ")] = s.Value
	})
	return got
}

func (in *injector) expect(now time.Time, want map[string]float64) {
	in.t.Helper()
	if err := in.k.refresh(now); err != nil {
		in.t.Fatal(err)
	}
	got := emitted(func(emit func(prometheus.Metric)) { in.k.emit(newFamilies(), emit) })
	for series, v := range want {
		if got[series] != v {
			in.t.Errorf("%s = %v, want %v", series, got[series], v)
		}
	}
	if n := len(in.k.peers); 8*(n-1) != len(got) && 8*n != len(got) {
		in.t.Errorf("%d series of %d peers: %v", len(got), n, got)
	}
}

// TestTraffic injects two connections with an enclave, and one from a virtual machine.
func TestTraffic(t *testing.T) {
	in := inject(t)
	for range 2 {
		in.to(16, opRequest, 0) // belongs to nobody until the first answer
		in.from(16, opResponse, 0)
		in.to(16, opRW, 1000)
		in.to(16, opRW, 1)
		in.from(16, opCredit, 0)
		in.from(16, opRW, 65536)
		in.from(16, opReset, 0)
	}
	in.from(42, opRequest, 0)
	in.to(42, opResponse, 0)
	in.to(42, opShutdown, 0)
	in.to(42, opReset, 0)
	in.expect(time.Now(), map[string]float64{
		"vsock_bytes_total 16 sent": 2002, "vsock_bytes_total 16 received": 131072,
		"vsock_packets_total 16 sent": 5, "vsock_packets_total 16 received": 8,
		"vsock_connection_requests_total 16 sent": 1, "vsock_connection_requests_total 16 received": 0,
		"vsock_resets_total 16 sent": 0, "vsock_resets_total 16 received": 2,
		"vsock_connection_requests_total 42 received": 1, "vsock_packets_total 42 sent": 3, "vsock_packets_total 42 received": 1,
		"vsock_resets_total 42 sent": 1, "vsock_bytes_total 42 sent": 0,
		"vsock_connection_requests_total other sent": 1, "vsock_packets_total other sent": 1,
	})
}

// TestRequestsWithoutAnswer sends requests to more addresses than the map has entries. They replace no peer.
func TestRequestsWithoutAnswer(t *testing.T) {
	in := inject(t)
	for cid := uint64(100); cid < 100+3*maxPeers; cid++ {
		in.to(cid, opRequest, 0)
		in.from(cid, opReset, 0)
	}
	in.from(16, opRW, 7)
	in.expect(time.Now(), map[string]float64{
		"vsock_bytes_total 16 received": 7, "vsock_connection_requests_total other sent": 3 * maxPeers, "vsock_resets_total other received": 3 * maxPeers,
	})
	if len(in.k.peers) != 2 {
		t.Errorf("%d peers, want 2", len(in.k.peers))
	}
}

// TestManyPeers has more peers than the map has entries. The peers then become quiet.
func TestManyPeers(t *testing.T) {
	in := inject(t)
	for cid := uint64(100); cid < 100+2*maxPeers; cid++ {
		in.from(cid, opRW, 10)
	}
	now := time.Now()
	in.expect(now, map[string]float64{"vsock_bytes_total 100 received": 10, "vsock_bytes_total other received": 10 * (maxPeers + 1)})
	cost := in.k.spent()
	if want := 2 * maxPeers * costOfPacket; cost != want {
		t.Errorf("the packets have cost %v, want %v", cost, want)
	}
	in.from(100, opRW, 1)
	in.expect(now.Add(quiet), map[string]float64{"vsock_bytes_total 100 received": 11, "vsock_bytes_total other received": 10 * (maxPeers + 1)})
	if len(in.k.peers) != 2 {
		t.Errorf("%d peers remain, want 2", len(in.k.peers))
	}
	in.from(1000, opRW, 5)
	in.expect(now.Add(quiet), map[string]float64{"vsock_bytes_total 1000 received": 5})
	if more := in.k.spent() - cost; more != 2*costOfPacket {
		t.Errorf("two packets have cost %v", more)
	}
}

// parent returns the roots of a machine with the driver of Nitro Enclaves.
func parent(t *testing.T, files map[string]string) tee.Roots {
	t.Helper()
	files["dev/nitro_enclaves"] = ""
	root := hostfstest.Tree(t, files)
	return tee.Roots{Proc: filepath.Join(root, "proc"), Dev: filepath.Join(root, "dev"), Sys: filepath.Join(root, "sys")}
}

// TestAttached attaches to the tracepoints of this kernel, and ends above the budget.
func TestAttached(t *testing.T) {
	in := inject(t)
	in.k.object.Close()
	b := New(Options{Roots: parent(t, map[string]string{"proc/stat": ""}), Budget: 0.01, Log: slog.New(slog.DiscardHandler)})
	if err := b.Init(t.Context()); err != nil || b.failed != nil {
		t.Fatal(err, b.failed)
	}
	t.Cleanup(func() { _ = b.Shutdown(t.Context()) })
	if b.kernel != nil && !b.kernel.attached && errors.Is(b.kernel.attach(), fs.ErrNotExist) {
		t.Skip("this kernel has no vsock of virtio loaded")
	}
	if b.kernel == nil || !b.kernel.attached || len(b.kernel.status) != 2 {
		t.Fatal("the programs are not attached")
	}
	now := time.Now()
	b.kernel.removed += time.Hour
	b.tend(now.Add(time.Minute))
	b.tend(now.Add(time.Hour))
	if b.kernel.attached || !b.kernel.stopped || b.kernel.status[0].Attached() {
		t.Errorf("counting goes on above the budget: %+v", b.kernel.status)
	}
}

// BenchmarkPacket measures what the program takes for a packet of data from one of 100 peers.
func BenchmarkPacket(b *testing.B) {
	in := inject(b)
	for cid := range uint64(100) {
		in.from(cid, opRW, 1)
	}
	ctx, cancel := context.WithCancel(b.Context())
	measured := make(chan error)
	go func() { measured <- bpf.SampleCosts(ctx, time.Hour) }()
	for b.Loop() {
		in.from(50, opRW, 1)
	}
	cancel()
	if err := <-measured; err != nil {
		b.Fatal(err)
	}
	for _, c := range in.k.object.Costs() {
		if c.Program == "vsock_received" && c.Runs > 0 {
			b.ReportMetric(float64(c.RunTime.Nanoseconds())/float64(c.Runs), "ns/packet")
		}
	}
}

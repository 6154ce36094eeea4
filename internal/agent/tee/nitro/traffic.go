// SPDX-License-Identifier: Apache-2.0

package nitro

import (
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
)

//go:embed nitro.bpf.o
var object []byte

const (
	// others is the key of traffic without an entry of its own (VMADDR_CID_ANY).
	others = ^uint32(0)
	// quiet is the time without a packet after which a peer loses its entry. An enclave gets another address when it starts again.
	quiet = 10 * time.Minute
	// costOfPacket is the CPU time of a program for one packet (BenchmarkPacket, docs/user/nitro.md).
	costOfPacket = 150 * time.Nanosecond
)

// ways are the probes, with the program and the tracepoint of each.
var ways = []struct{ probe, program, tracepoint string }{
	{"vsock_sent", "vsock_sent", "virtio_transport_alloc_pkt"},
	{"vsock_received", "vsock_received", "virtio_transport_recv_pkt"},
}

// directionNames are values of the label direction, in the order of the kernel side.
var directionNames = [directions]string{"sent", "received"}

// kernelSide is everything in the kernel.
type kernelSide struct {
	object   *bpf.Object
	status   []bpf.Status
	attached bool
	stopped  bool // for good, because it exceeded the budget
	peers    map[uint32]*peer
	removed  time.Duration // estimated CPU time for the packets of removed peers
}

// peer is the last reading of a peer.
type peer struct {
	traffic
	active time.Time // when it last changed
}

// open creates the map.
func open() (*kernelSide, error) {
	obj, err := bpf.Open(object)
	if err != nil {
		return nil, err
	}
	k := &kernelSide{object: obj, peers: map[uint32]*peer{}}
	err = obj.CreateMaps()
	if err == nil {
		err = obj.Map("peers").Put(others, traffic{})
	}
	if err != nil {
		obj.Loaded()
		return nil, errors.Join(fmt.Errorf("watching vsock: %w", err), obj.Close())
	}
	return k, nil
}

// load creates the map and loads the programs, without attaching them.
func load() (*kernelSide, error) {
	k, err := open()
	if err != nil {
		return nil, err
	}
	defer k.object.Loaded()
	for _, w := range ways {
		if err := k.object.Ready(bpf.Way{Program: w.program, Mechanism: bpf.RawTracepoint, Target: w.tracepoint}); err != nil {
			return nil, errors.Join(fmt.Errorf("watching vsock: %w", err), k.object.Close())
		}
	}
	return k, nil
}

// attach attaches both programs. It fails while the module with the tracepoints is not loaded.
func (k *kernelSide) attach() error {
	var status []bpf.Status
	for _, w := range ways {
		if err := k.object.Reattach(w.program); err != nil {
			return errors.Join(fmt.Errorf("watching vsock: %w", err), k.detach())
		}
		status = append(status, bpf.Status{Probe: w.probe, Mechanism: bpf.RawTracepoint, Program: w.program})
	}
	k.status, k.attached = status, true
	return nil
}

func (k *kernelSide) detach() error {
	var errs []error
	for _, w := range ways {
		errs = append(errs, k.object.Detach(w.program))
	}
	k.attached = false
	return errors.Join(errs...)
}

// stop detaches for good.
func (k *kernelSide) stop(reason string) error {
	for i := range k.status {
		k.status[i] = bpf.Status{Probe: k.status[i].Probe, Mechanism: bpf.NotAttached, Program: k.status[i].Program, Reason: reason}
	}
	k.stopped = true
	return k.detach()
}

// refresh reads all peers, and removes those without traffic.
func (k *kernelSide) refresh(now time.Time) error {
	m := k.object.Map("peers")
	err := bpf.Each(m, func(cid uint32, t traffic) {
		p := k.peers[cid]
		if p == nil {
			p = &peer{active: now}
			k.peers[cid] = p
		}
		if p.traffic != t {
			p.traffic, p.active = t, now
		}
	})
	for cid, p := range k.peers {
		if cid == others || now.Sub(p.active) < quiet {
			continue
		}
		if failed := m.Delete(cid); failed != nil && !bpf.IsMissing(failed) {
			err = errors.Join(err, fmt.Errorf("removing the peer %d: %w", cid, failed))
			continue
		}
		k.removed += p.cost()
		delete(k.peers, cid)
	}
	return err
}

func (p *peer) cost() time.Duration {
	return time.Duration(p.Packets[sent]+p.Packets[received]) * costOfPacket
}

// spent estimates the CPU time that the programs have taken.
func (k *kernelSide) spent() time.Duration {
	total := k.removed
	for _, p := range k.peers {
		total += p.cost()
	}
	return total
}

// name returns the value of the label cid.
func name(cid uint32) string {
	if cid == others {
		return "other"
	}
	return strconv.FormatUint(uint64(cid), 10)
}

// emit emits the traffic of all peers. The entry others is emitted if it has traffic.
func (k *kernelSide) emit(f *families, emit func(prometheus.Metric)) {
	for cid, p := range k.peers {
		if cid == others && p.traffic == (traffic{}) {
			continue
		}
		for d, direction := range directionNames {
			emit(f.bytes.Value(float64(p.Bytes[d]), name(cid), direction))
			emit(f.packets.Value(float64(p.Packets[d]), name(cid), direction))
			emit(f.opened.Value(float64(p.Opened[d]), name(cid), direction))
			emit(f.resets.Value(float64(p.Resets[d]), name(cid), direction))
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
)

// ErrNotProbe says that a program was not attached as the way of a probe.
var ErrNotProbe = errors.New("no probe attached this program")

// hooked is a program that can be taken off its event and put back without being loaded again.
type hooked struct {
	way  Way
	prog *ebpf.Program
	link io.Closer // nil while it rests
}

func (h *hooked) on() error {
	if h.link != nil {
		return nil
	}
	l, err := hook(h.way, h.prog)
	if err != nil {
		return fmt.Errorf("%s %s: %w", h.way.Mechanism, h.way.Target, err)
	}
	h.link = l
	return nil
}

func (h *hooked) off() error {
	if h.link == nil {
		return nil
	}
	l := h.link
	h.link = nil
	return l.Close()
}

// Close implements io.Closer.
func (h *hooked) Close() error { return h.off() }

// Rest takes the program of an attached probe off its event: what nothing is attached to costs nothing.
// It is loaded still. To rest what rests is no error.
func (o *Object) Rest(program string) error {
	h := o.hooks[program]
	if h == nil {
		return fmt.Errorf("resting %s: %w", program, ErrNotProbe)
	}
	if err := h.off(); err != nil {
		return fmt.Errorf("resting %s: %w", program, err)
	}
	return nil
}

// Resume attaches a program again that rests. It takes 0.4 ms, and more than ten if it has rested for less
// than the kernel needs to let go of a tracepoint. It needs no privilege beyond that of using eBPF (CAP_BPF).
func (o *Object) Resume(program string) error {
	h := o.hooks[program]
	if h == nil {
		return fmt.Errorf("resuming %s: %w", program, ErrNotProbe)
	}
	if err := h.on(); err != nil {
		return fmt.Errorf("resuming %s: %w", program, err)
	}
	return nil
}

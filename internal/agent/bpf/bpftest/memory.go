// SPDX-License-Identifier: Apache-2.0

// Package bpftest gives tests memory of the kernel, for records that eBPF programs read.
package bpftest

import (
	"os"
	"testing"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// Words is memory of the kernel that a test can write.
type Words = [512]uint64

// Memory returns memory of the kernel with its address there. It skips a test without the privilege to load programs. The object is
// internal/agent/bpf/testdata/address.bpf.o.
func Memory(t testing.TB, object string) (words *Words, address uint64) {
	t.Helper()
	privilegetest.Alone(t)
	text, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := bpf.Open(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = memory.Close() }) // nothing was written
	if err := memory.CreateMaps(); err != nil {
		t.Fatal(err)
	}
	find, err := memory.Call("find")
	if err != nil {
		t.Fatal(err)
	}
	if err := find(); err != nil {
		t.Fatal(err)
	}
	all, err := bpf.View[Words](memory, "memory")
	if err != nil {
		t.Fatal(err)
	}
	found, err := bpf.View[uint64](memory, "address")
	if err != nil {
		t.Fatal(err)
	}
	return &all[0], found[0]
}

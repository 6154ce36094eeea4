// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"bytes"
	"testing"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// hostile reads an untrusted program. It must return soon, with or without an error.
func hostile(_ *testing.T, data []byte) {
	p, err := executable.Read(bytes.NewReader(data))
	if err != nil {
		return
	}
	if of, err := functionsOf(p); err == nil {
		_, _ = p.ProbePoint(of.start)
		_, _ = p.ProbePoint(of.end)
	}
	_, _ = findLayout(p)
}

func TestHostileFiles(t *testing.T) { boundarytest.Damaged(t, hostile) }

func FuzzLayout(f *testing.F) {
	f.Add(boundarytest.Small())
	f.Fuzz(hostile)
}

func TestSmallProgramIsRead(t *testing.T) {
	p, err := executable.Read(bytes.NewReader(boundarytest.Small()))
	if err != nil {
		t.Fatal(err)
	}
	of, err := functionsOf(p)
	l, errLayout := findLayout(p)
	if err != nil || errLayout != nil || of.start != 120 || l.Offsets != [counters]uint32{0x28, 0x30, 0x38, 0x40, 0x48} {
		t.Errorf("found %#x and %+v, %v, %v", of.start, l, err, errLayout)
	}
}

func TestOnlyKnownLayoutsMeasure(t *testing.T) {
	g := &Counters{files: map[*window.File]*layout{}, processes: map[uint32]*state{}}
	g.know(3, &layout{})
	if !g.Measures(&process.Process{Group: process.Group{TGID: 3}}) || g.Measures(&process.Process{Group: process.Group{TGID: 4}}) {
		t.Error("Measures is not true for process 3 alone")
	}
}

func TestTrust(t *testing.T) {
	for _, tt := range []struct {
		c    [counters]uint64
		want int
	}{
		{[counters]uint64{}, 5},
		{[counters]uint64{224, 192, 201, 32, 0}, 5}, // the hello-world example of Gramine's documentation
		{[counters]uint64{478, 472, 1663, 0, 0}, 5},
		{[counters]uint64{2, 2, 0, 0, 0}, 5},
		{[counters]uint64{1000, 900, 0, 0, 0}, 3},           // 100 ECALLs: the offsets of the signals are wrong
		{[counters]uint64{1000, 999, 0, 0x7f00_0000, 0}, 3}, // an address
		{[counters]uint64{5, 6, 0, 0, 0}, 0},
		{[counters]uint64{0, 0x5555_0000_0000, 0, 0, 0}, 0},
	} {
		if got := trust(tt.c, false); got != tt.want {
			t.Errorf("%v: %d counters are trusted, want %d", tt.c, got, tt.want)
		}
	}
}

func TestScanFindsIncrementsAcrossChunks(t *testing.T) {
	code := bytes.Repeat([]byte{0x90}, 3*executable.Chunk)
	for i, offset := range []int{executable.Chunk - 10, executable.Chunk - 5, 2*executable.Chunk - 1, 3*executable.Chunk - 10} {
		code = append(code[:offset:offset], append([]byte{0x65, 0xf0, 0x48, 0xff, 0x04, 0x25, byte(0x28 + 8*i), 0, 0, 0}, code[offset+10:]...)...)
		found := map[uint32]bool{}
		if err := scanIncrements(bytes.NewReader(code), found); err != nil || !found[uint32(0x28+8*i)] {
			t.Errorf("the increment at %d was not found: %v, %v", offset, found, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
)

// note returns a note of a USDT probe, as sys/sdt.h writes it.
func note(at, base, semaphore uint64, texts string) []byte {
	var d bytes.Buffer
	for _, n := range []uint64{at, base, semaphore} {
		_ = binary.Write(&d, binary.LittleEndian, n) // a buffer takes all
	}
	d.WriteString(texts)
	size := d.Len()
	var all bytes.Buffer
	for _, n := range []uint32{8, uint32(size), 3} {
		_ = binary.Write(&all, binary.LittleEndian, n)
	}
	all.WriteString("stapsdt\x00")
	all.Write(d.Bytes())
	all.Write(make([]byte, (4-size%4)%4))
	return all.Bytes()
}

func TestNotes(t *testing.T) {
	other := append([]byte{4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, "GNU\x00x\x00\x00\x00"...)
	data := bytes.Join([][]byte{note(1, 2, 3, "p\x00n\x008@%rdi\x00"), other, note(4, 5, 6, "p\x00m\x00\x00")}, nil)
	var sizes []int
	for len(data) > 0 {
		d, rest, ok := nextUSDT(data)
		if !ok {
			t.Fatalf("a note is damaged, %d bytes before the end", len(data))
		}
		sizes, data = append(sizes, len(d)), rest
	}
	if len(sizes) != 3 || sizes[0] != 24+11 || sizes[1] != 0 || sizes[2] != 24+5 {
		t.Errorf("sizes of descriptions: %v", sizes)
	}
	for _, damaged := range [][]byte{{1}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 3, 0, 0, 0}, {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0}} {
		if _, _, ok := nextUSDT(damaged); ok {
			t.Errorf("%v is a note", damaged)
		}
	}
}

// A file without notes has no probes, and one that is not a note says so.
func TestNoUSDT(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small")
	if err := os.WriteFile(path, small(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := open(t, path)
	if all, err := p.USDT("p", "n"); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// A file may have thousands of sections at the same notes.
func TestUSDTNotesAreReadOnce(t *testing.T) {
	const names = "\x00.note.stapsdt\x00"
	p := &Program{file: bytes.NewReader([]byte(names)), sections: []elf.Section64{
		{}, {Name: 1, Type: uint32(elf.SHT_NOTE), Size: maxUSDTNotes}, {Name: 1, Type: uint32(elf.SHT_NOTE), Size: maxUSDTNotes},
	}}
	if _, err := p.USDT("p", "n"); err == nil || !strings.Contains(err.Error(), "in several sections") {
		t.Error(err)
	}
}

// usdt.c has a probe at two sites and one with a semaphore.
func TestUSDTOfARealProgram(t *testing.T) {
	p, data := open(t, boundarytest.Build(t, filepath.Join(t.TempDir(), "usdt"), "-O2", boundarytest.Source("usdt.c")))
	step, err := p.USDT("app", "step")
	if err != nil || len(step) != 2 || step[0].Offset == step[1].Offset || step[0].Semaphore != 0 || !strings.HasSuffix(step[1].Arguments, " -4@$-5") {
		t.Errorf("step: %+v, %v", step, err)
	}
	guarded, err := p.USDT("app", "guarded")
	if err != nil || len(guarded) != 1 || !strings.HasPrefix(guarded[0].Arguments, "8@%") {
		t.Fatalf("guarded: %+v, %v", guarded, err)
	}
	// In the file the semaphore is zero.
	if at := guarded[0].Semaphore; at == 0 || data[at] != 0 || data[at+1] != 0 {
		t.Errorf("there is no semaphore at %#x", at)
	}
	for _, names := range [][2]string{{"app", "none"}, {"none", "step"}, {"app", "ste"}} {
		if all, err := p.USDT(names[0], names[1]); err != nil || len(all) != 0 {
			t.Errorf("%v: %v, %v", names, all, err)
		}
	}
}

// It is certain of each instruction of a function that one begins there, and of no other address.
func TestBegins(t *testing.T) {
	p, _ := open(t, boundarytest.Build(t, filepath.Join(t.TempDir(), "usdt"), "-O2", boundarytest.Source("usdt.c")))
	n := 0
	if err := p.Functions(func(f Function) {
		if f.Name != "work" || n > 0 {
			return
		}
		code, _ := p.Bytes(f.Address, f.Size+LongestInstruction)
		for at := uint64(0); at < f.Size; n++ {
			next := at + uint64(lengthOf(code[at:]))
			for i := at; i < next; i++ {
				if is, err := p.Begins(f.Address + i); err != nil || len(is) > 0 != (i == at) {
					t.Errorf("at %#x of the function: %v, %v", i, is, err)
				}
			}
			at = max(next, at+1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if n < 5 {
		t.Errorf("only %d instructions", n)
	}
}

// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read/names"
)

const (
	armBase   = 0xaaaae5a80000     // where the kernel maps programs on aarch64
	armKernel = 0xffff800008000000 // its kernel
)

// armRecording is a perf.data of aarch64 (tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h) with
// samples of the program arm: stacks of the kernel and of the program, with the marks that the kernel writes between them.
func armRecording(buildID []byte, stacks [][]uint64) []byte {
	const attr = 128 // PERF_ATTR_SIZE_VER7
	le := binary.LittleEndian
	var data []byte
	record := func(kind uint32, misc uint16, body ...any) {
		var b bytes.Buffer
		for _, v := range body {
			_ = binary.Write(&b, le, v) // into memory
		}
		data = le.AppendUint32(data, kind)
		data = le.AppendUint16(data, misc)
		data = le.AppendUint16(data, uint16(8+b.Len()))
		data = append(data, b.Bytes()...)
	}
	padded := func(s string) []byte { return append([]byte(s), make([]byte, 8-len(s)%8)...) }
	id := make([]byte, 24) // PERF_RECORD_MISC_MMAP_BUILD_ID: its length, and 20 bytes
	id[0] = byte(copy(id[4:], buildID))
	record(1, 1, int32(-1), uint32(0), uint64(armKernel), uint64(1<<24), uint64(armKernel), padded("[kernel.kallsyms]_text"))
	record(3, 0, uint32(9), uint32(9), padded("arm"))
	record(10, 2|1<<14, uint32(9), uint32(9), uint64(armBase+0x1000), uint64(0x1000), uint64(0x1000), id, uint32(5), uint32(2), padded("/opt/arm"))
	for i, stack := range stacks {
		misc := uint16(2)
		if stack[1] >= armKernel {
			misc = 1
		}
		record(9, misc, stack[1], uint32(9), uint32(9), uint64(1000+i), uint64(10_000_000), uint64(len(stack)), stack)
	}
	head := []byte("PERFILE2")
	for _, v := range []uint64{104, attr + 16, 104, attr + 16, 104 + attr + 16, uint64(len(data)), 0, 0, 1<<4 | 1<<6, 0, 0, 0} { // OSRELEASE, ARCH
		head = le.AppendUint64(head, v)
	}
	event := make([]byte, attr+16)
	le.PutUint32(event, 1) // software, cpu-clock
	le.PutUint32(event[4:], attr)
	le.PutUint64(event[24:], 1<<0|1<<1|1<<2|1<<5|1<<8) // IP, TID, TIME, CALLCHAIN, PERIOD
	all := slices.Concat(head, event, data)
	at := uint64(len(all) + 2*16)
	var texts []byte
	for _, s := range []string{"6.1.0-18-arm64", "aarch64"} {
		all = le.AppendUint64(le.AppendUint64(all, at), 4+64)
		texts = append(le.AppendUint32(texts, 64), append([]byte(s), make([]byte, 64-len(s))...)...)
		at += 4 + 64
	}
	return append(all, texts...)
}

// TestRecordingOfArm reads a recording of another architecture with the files of that machine. perf must give the same names.
func TestRecordingOfArm(t *testing.T) {
	dir := t.TempDir()
	program := unpacked(t, "arm")
	if err := os.MkdirAll(filepath.Join(dir, "opt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opt/arm"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil || f.Machine != elf.EM_AARCH64 {
		t.Fatal(f, err)
	}
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]uint64{}
	for _, s := range all {
		in[s.Name] = armBase + s.Value
	}
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	id := note[16:]
	const kernel, user = ^uint64(127), ^uint64(511) // PERF_CONTEXT_KERNEL and PERF_CONTEXT_USER
	stacks := [][]uint64{
		{user, in["spin"] + 8, in["choose"] + 40, in["_start"] + 32},
		{user, in["spin"], in["choose"] + 60, in["_start"] + 32}, // its first address has the mark $x too
		{user, in["_start"] + 16},
		{kernel, armKernel + 0x1000, user, in["choose"] + 4, in["_start"] + 32},
	}
	data := armRecording(id, stacks)
	p := open(t, data, Options{Names: &names.Finder{Root: dir}})
	want := map[string]int64{
		"arm 9;spin;choose;_start": 2, "arm 9;_start": 1, "arm 9;;choose;_start": 1,
	}
	equal(t, byStack(p, nil), want)
	if v := p.Values[p.Main]; v.Type != "cpu" || p.Total() != 40e6 {
		t.Errorf("%v, total %d", v, p.Total())
	}
	other := slices.Clone(id)
	other[0] ^= 1
	p = open(t, armRecording(other, stacks), Options{Names: &names.Finder{Root: dir}})
	if notes := strings.Join(p.Notes, ""); slices.ContainsFunc(p.Frames, profile.Frame.Resolved) || !strings.Contains(notes, "not the one that was recorded") {
		t.Errorf("a program with another build ID gives names: %v, %q", p.Frames, notes)
	}

	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(dir, "perf.data")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("perf", "--buildid-dir", filepath.Join(dir, "cache"), "script", "--no-inline", "--symfs", dir, "-i", file, "-F", "comm,tid,time,event,ip,sym").Output()
	if err != nil {
		t.Fatalf("perf does not read it: %v", err)
	}
	t.Logf("perf:\n%s", out)
	equal(t, byStack(open(t, data, Options{Names: &names.Finder{Root: dir}}), nil), byStack(open(t, out, Options{}), nil))
}

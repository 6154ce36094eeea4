// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/run/profile/profiletest"
)

// roomy has memory for each recording of the tests.
const roomy = 512 << 20

// noFile matches mappings that perf does not take for files.
var noFile = regexp.MustCompile(`^(//.*|\[heap\]|\[stack\]|/memfd:.*)$`)

// shown returns the samples of a recording in the notation of "perf script -F comm,tid,time,event,ip". An address is shown
// as perf does: within its file if it has a mapping of one.
func shown(in io.Reader) (string, *Recording, error) {
	var b strings.Builder
	rec, err := Read(in, roomy, func(s *Sample) error {
		micro := s.Time / 1000
		fmt.Fprintf(&b, "%s %d %d.%06d: \x00%p\x00", s.Comm, s.TID, micro/1e6, micro%1e6, s.Event)
		if s.Single {
			fmt.Fprintf(&b, " %x\n", s.Stack[0].Address)
			return nil
		}
		b.WriteString("\n")
		for _, f := range s.Stack {
			at := f.Address
			if m := f.Mapping; m != nil && !f.Kernel && !noFile.MatchString(m.Path) {
				at += m.Offset - m.Start
			}
			fmt.Fprintf(&b, "%x\n", at)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	text := b.String()
	for _, e := range rec.Events {
		text = strings.ReplaceAll(text, fmt.Sprintf("\x00%p\x00", e), e.Name+":")
	}
	return text, rec, nil
}

// alone is a sample without a stack up to its address.
var alone = regexp.MustCompile(`^.*: [0-9a-f]{4,16}\b`)

// perfs is the output of perf script without what differs in white space and without names of functions.
func perfs(text []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		trimmed := strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, "\t") {
			trimmed, _, _ = strings.Cut(trimmed, " ")
		}
		if m := alone.FindString(trimmed); m != "" {
			trimmed = m
		}
		b.WriteString(trimmed + "\n")
	}
	return b.String()
}

// differ shows the first difference of two texts.
func differ(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			from := max(0, i-12)
			t.Fatalf("line %d is %q, perf has %q; before:\n%s", i+1, g[i], w[i], strings.Join(w[from:i], "\n"))
		}
	}
	t.Fatalf("%d lines, perf has %d", len(g), len(w))
}

// unzipped reads a file of testdata.
func unzipped(t testing.TB, name string) []byte {
	t.Helper()
	return profiletest.Unzipped(t, filepath.Join("testdata", name+".gz"))
}

var stored = []string{"file", "compressed", "stream", "packed-stream", "flat", "events"}

func TestSamplesAreThoseOfPerf(t *testing.T) {
	for _, name := range stored {
		t.Run(name, func(t *testing.T) { compare(t, unzipped(t, name+".data"), unzipped(t, name+".txt")) })
	}
}

// compare compares sample by sample.
func compare(t *testing.T, data, answer []byte) {
	t.Helper()
	got, rec, err := shown(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, "-clock:"); n < 50 || rec.Cut || rec.Arch != "x86_64" {
		t.Errorf("%d samples, %+v", n, rec)
	}
	differ(t, perfs([]byte(got)), perfs(answer))
}

// The same with what perf records here and now.
func TestNewRecordings(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "forks")
	out, err := exec.Command("gcc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-o", program, "testdata/forks.c").CombinedOutput()
	if err != nil {
		t.Skipf("%v: %s", err, out)
	}
	for name, args := range map[string][]string{"stacks": {"-g"}, "flat": nil, "compressed": {"-g", "-z"}, "stream": {"-g", "-o-"}, "counters": {"-g", "-e", "{task-clock,page-faults}:S"}} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name+".data")
			args := append([]string{"record", "-q", "-e", "cpu-clock", "-F", "499"}, args...)
			if name != "stream" {
				args = append(args, "-o", file)
			}
			recording := exec.Command("perf", append([]string{"--buildid-dir", dir}, append(args, program, "0.1")...)...)
			piped, err := recording.Output()
			if err != nil {
				t.Skipf("perf cannot record here: %v", err)
			}
			if name == "stream" {
				if err := os.WriteFile(file, piped, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			answer, err := exec.Command("perf", "script", "--no-inline", "-i", file, "-F", "comm,tid,time,event,ip,sym").Output()
			if err != nil {
				t.Fatal(err)
			}
			if name == "counters" { // perf repeats a sample for each other counter of its group
				answer = regexp.MustCompile(`(?m)^.* page-faults: *\n(\t.*\n)*\n`).ReplaceAll(answer, nil)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, data, answer)
		})
	}
}

// A recording that ends early, for example because the machine did, has the samples until then.
func TestCutRecording(t *testing.T) {
	data := unzipped(t, "file.data")
	got, rec, err := shown(bytes.NewReader(data[:len(data)/2]))
	if err != nil || !rec.Cut || strings.Count(got, "\n\n") < 20 {
		t.Errorf("%v, %d bytes, %+v", err, len(got), rec)
	}
}

// Code that the kernel generates has the name that the recording gives it, from its beginning until it is removed.
func TestGeneratedCodeOfTheKernel(t *testing.T) {
	rec := func(start uint64, size uint32, flags uint16, name string) record {
		le := binary.LittleEndian
		b := le.AppendUint64(nil, start)
		b = le.AppendUint32(b, size)
		b = le.AppendUint16(b, 1)
		b = le.AppendUint16(b, flags)
		return record{kind: recordKsymbol, body: append(b, name+"\x00"...)}
	}
	h := &machine{order: binary.LittleEndian, rec: &Recording{}, texts: &texts{known: map[string]string{}, most: 1 << 20}, memory: 1 << 20, threads: map[int32]*thread{}}
	at := func(address uint64) string {
		if m := h.kernel.find(address); m != nil {
			return m.Symbol
		}
		return ""
	}
	for _, r := range []record{rec(0x1000, 0x100, 0, "bpf_prog_one"), rec(0x1100, 0x80, 0, "bpf_prog_two"), rec(^uint64(0)-4, 8, 0, "bad"), rec(0x2000, 0, 0, "empty")} {
		if err := h.deliver(r, &Event{}); err != nil {
			t.Fatal(err)
		}
	}
	if at(0x10ff) != "bpf_prog_one" || at(0x1100) != "bpf_prog_two" || at(0x1180) != "" || h.mappings != 2 {
		t.Errorf("%q, %q, %q, %d mappings", at(0x10ff), at(0x1100), at(0x1180), h.mappings)
	}
	for _, r := range []record{rec(0x1000, 0x100, ksymbolGone, "bpf_prog_one"), rec(0x3000, 0x100, ksymbolGone, "unknown"), rec(0x1000, 0x40, 0, "bpf_prog_three")} {
		if err := h.deliver(r, &Event{}); err != nil {
			t.Fatal(err)
		}
	}
	if at(0x1000) != "bpf_prog_three" || at(0x10ff) != "" || h.mappings != 2 {
		t.Errorf("%q, %q, %d mappings", at(0x1000), at(0x10ff), h.mappings)
	}
}

// FuzzRead reads any bytes: nothing is read that is not there, and no stack is longer than the limit.
func FuzzRead(f *testing.F) {
	for _, name := range stored {
		f.Add(unzipped(f, name+".data"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Read(bytes.NewReader(data), roomy, func(s *Sample) error {
			if s.Event == nil || s.Comm == "" || len(s.Stack) > maxChain {
				t.Errorf("%+v", s)
			}
			for _, f := range s.Stack {
				if m := f.Mapping; m != nil && (f.Address < m.Start || f.Address >= m.End) {
					t.Errorf("%#x is not in %+v", f.Address, m)
				}
			}
			return nil
		})
	})
}

// swapped is a recording of one event as a machine of the other byte order writes it, without features.
func swapped(t *testing.T, data []byte) []byte {
	t.Helper()
	le := binary.LittleEndian
	out := bytes.Clone(data)
	swap := func(at, size, n int) {
		for i := at; i < at+size*n; i += size {
			slices.Reverse(out[i : i+size])
		}
	}
	from := int(le.Uint64(data[40:]))
	out = out[:from+int(le.Uint64(data[48:]))]
	copy(out, Magics[1])
	attr, ids := int(le.Uint64(data[24:])), int(le.Uint64(data[16:]))-16
	list, size := int(le.Uint64(data[attr+ids:])), int(le.Uint64(data[attr+ids+8:]))
	clear(out[72:104])
	swap(8, 8, 8)
	swap(list, 8, size/8)
	swap(attr+ids, 8, 2)
	swap(attr, 4, 2)
	swap(attr+8, 8, 4)
	for i := attr + 40; i < attr+48; i++ {
		out[i] = bits.Reverse8(out[i])
	}
	swap(attr+48, 4, 2)
	swap(attr+56, 8, 3)
	swap(attr+80, 4, 2)
	kept := bytes.Clone(out[:from])
	for at := from; at < len(out); {
		kind, n := le.Uint32(data[at:]), int(le.Uint16(data[at+6:]))
		swap(at, 4, 1)
		swap(at+4, 2, 2)
		body, end := at+8, at+n
		format := le.Uint64(data[attr+24:])
		trailer := 8 * words8(format, sampleTID, sampleTime, sampleID, sampleStream, sampleCPU, sampleIdentifier)
		pairs := func(at int) { swap(at, 4, 2) }
		ending := func() {
			at := end - trailer
			for _, f := range []uint64{sampleTID, sampleTime, sampleID, sampleStream, sampleCPU, sampleIdentifier} {
				if format&f == 0 {
					continue
				}
				if f == sampleTID || f == sampleCPU {
					pairs(at)
				} else {
					swap(at, 8, 1)
				}
				at += 8
			}
		}
		switch kind {
		case recordSample:
			at := body
			for _, f := range []uint64{sampleIdentifier, sampleIP, sampleTID, sampleTime, sampleID, samplePeriod, sampleChain} {
				switch {
				case format&f == 0:
					continue
				case f == sampleTID:
					pairs(at)
				case f == sampleChain:
					swap(at, 8, (end-at)/8)
				default:
					swap(at, 8, 1)
				}
				at += 8
			}
		case recordMmap:
			pairs(body)
			swap(body+8, 8, 3)
			ending()
		case recordMmap2:
			pairs(body)
			swap(body+8, 8, 3)
			if le.Uint16(data[at+4:])&miscBuildID == 0 {
				swap(body+32, 4, 2)
				swap(body+40, 8, 2)
			}
			swap(body+56, 4, 2)
			ending()
		case recordComm:
			pairs(body)
			ending()
		case recordFork, recordExit:
			swap(body, 4, 4)
			swap(body+16, 8, 1)
			ending()
		case recordRound, 82: // nothing
		default: // of no meaning here
			at = end
			continue
		}
		kept = append(kept, out[at:end]...)
		at = end
	}
	binary.BigEndian.PutUint64(kept[48:], uint64(len(kept)-from))
	return kept
}

// TestOtherByteOrder reads a recording of a machine of the other byte order. perf reads it too, and says the same.
func TestOtherByteOrder(t *testing.T) {
	data := swapped(t, unzipped(t, "file.data"))
	got, _, err := shown(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	differ(t, perfs([]byte(got)), perfs(unzipped(t, "file.txt")))
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	answer, err := exec.Command("perf", "script", "--no-inline", "-i", file, "-F", "comm,tid,time,event,ip").Output()
	if err != nil {
		t.Fatal(err)
	}
	differ(t, perfs([]byte(got)), perfs(answer))
}

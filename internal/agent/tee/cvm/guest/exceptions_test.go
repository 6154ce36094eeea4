// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/bpf/bpftest"
)

// Places of the records, in words. The registers are a struct pt_regs of x86-64.
const (
	wordRegs, wordOpcode, wordVE = 0, 32, 64
	wordIP, wordCS               = wordRegs + 16, wordRegs + 17
)

// injector runs the handlers' programs with registers and codes of exceptions that the test makes in memory of the kernel.
type injector struct {
	t       *testing.T
	kernel  *kernelSide
	words   *bpftest.Words
	address uint64
	vc, ve  func(cpu int, args ...uint64) error
}

// inject loads the programs as those of raw tracepoints, which read their arguments in the same way, and can run without an event.
func inject(t *testing.T) *injector {
	t.Helper()
	in := &injector{t: t, kernel: &kernelSide{}}
	in.words, in.address = bpftest.Memory(t, "../../../bpf/testdata/address.bpf.o")
	raw := object
	for _, handler := range []string{"vc_raw_handle_exception", "tdx_handle_virt_exception"} {
		was := []byte("fentry/" + handler)
		if !bytes.Contains(raw, was) {
			t.Fatalf("the object has no section %s", was)
		}
		raw = bytes.ReplaceAll(raw, was, []byte("raw_tp/"+handler))
	}
	obj, err := bpf.Open(raw)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { obj.Close() })
	cpus, err := bpf.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(obj.Resize("machine", cpus), obj.Resize("group_uses", 4), attribution.Resize(obj, 4), obj.SetConstant("cgroup_controller", int32(-1)), obj.CreateMaps()); err != nil {
		t.Fatal(err)
	}
	in.kernel.object = obj
	if err := in.kernel.mapArrays(); err != nil {
		t.Fatal(err)
	}
	if in.vc, err = obj.CallOn("vc_exception"); err != nil {
		t.Fatal(err)
	}
	if in.ve, err = obj.CallOn("virt_exception"); err != nil {
		t.Fatal(err)
	}
	return in
}

// counted runs a program and returns what it has counted, once, for the machine and for this process.
func (in *injector) counted(run func(cpu int, args ...uint64) error, second uint64) string {
	in.t.Helper()
	var before totals
	for i := range in.kernel.machine {
		before.add(&in.kernel.machine[i])
	}
	if err := run(-1, in.address+wordRegs*8, second); err != nil {
		in.t.Fatal(err)
	}
	var now totals
	for i := range in.kernel.machine {
		now.add(&in.kernel.machine[i])
	}
	found := ""
	for at := range now.Exceptions {
		switch now.Exceptions[at] - before.Exceptions[at] {
		case 0:
			continue
		case 1:
			found += causeNames[at/modes] + " " + modeNames[at%modes]
		default:
			in.t.Errorf("%d exceptions of %s were counted", now.Exceptions[at]-before.Exceptions[at], causeNames[at/modes])
		}
	}
	return found
}

// The codes are those of SVM (AMD64 Architecture Programmer's Manual, volume 2, appendix C). An access to an MSR has one code,
// and the instruction says which one it was.
func TestExceptionsOfSNP(t *testing.T) {
	in := inject(t)
	const user, kernel = 0x33, 0x10
	const wrmsr, rdmsr, rdtscp = 0x300f, 0x320f, 0xf9010f
	for _, tt := range []struct {
		code, cs, opcode uint64
		want             string
	}{
		{0x72, user, 0, "cpuid user"},
		{0x72, kernel, 0, "cpuid kernel"},
		{0x78, kernel, 0, "hlt kernel"},
		{0x7b, user, 0, "io user"},
		{0x7c, kernel, wrmsr, "msr_write kernel"},
		{0x7c, kernel, rdmsr, "msr_read kernel"},
		{0x7c, kernel, rdtscp, "other kernel"},
		{0x81, kernel, 0, "hypercall kernel"},
		{0x400, user, 0, "mmio user"},
		{0x6e, user, 0, "other user"}, // RDTSC
		{1 << 32, kernel, 0, "other kernel"},
	} {
		in.words[wordCS], in.words[wordIP], in.words[wordOpcode] = tt.cs, in.address+wordOpcode*8, tt.opcode
		if got := in.counted(in.vc, tt.code); got != tt.want {
			t.Errorf("code %#x with selector %#x is counted as %q, want %q", tt.code, tt.cs, got, tt.want)
		}
	}
	in.words[wordIP] = 0 // nothing is there to read
	if got := in.counted(in.vc, 0x7c); got != "other kernel" {
		t.Errorf("an instruction that cannot be read is counted as %q", got)
	}
}

// The reasons are those of VMX (Intel SDM, volume 3, appendix C).
func TestExceptionsOfTDX(t *testing.T) {
	in := inject(t)
	in.words[wordCS] = 0x33
	for reason, want := range map[uint64]string{
		10: "cpuid", 12: "hlt", 18: "hypercall", 30: "io", 31: "msr_read", 32: "msr_write", 48: "mmio", 49: "other", 1 << 32: "other",
	} {
		in.words[wordVE] = reason
		if got := in.counted(in.ve, in.address+wordVE*8); got != want+" user" {
			t.Errorf("reason %d is counted as %q, want %q", reason, got, want)
		}
	}
}

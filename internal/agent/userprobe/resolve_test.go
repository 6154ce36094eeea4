// SPDX-License-Identifier: Apache-2.0

package userprobe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/userprobe/probefile"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// format is that of block:block_rq_issue in Linux 6.18.
const format = `name: block_rq_issue
ID: 2104
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:dev_t dev;	offset:8;	size:4;	signed:0;
	field:sector_t sector;	offset:16;	size:8;	signed:0;
	field:unsigned int bytes;	offset:28;	size:4;	signed:0;
	field:unsigned short ioprio;	offset:32;	size:2;	signed:0;
	field:long ret;	offset:40;	size:8;	signed:1;
	field:char rwbs[10];	offset:34;	size:10;	signed:0;
	field:const char * name;	offset:72;	size:8;	signed:0;
	field:__data_loc char[] cmd;	offset:60;	size:4;	signed:0;
	field:__u8 flags[1];	offset:68;	size:1;	signed:0;

print fmt: "%d", REC->dev
`

func TestFieldsOfATracepoint(t *testing.T) {
	at := ofRecord(format)
	for name, want := range map[string]fetch{
		"dev": {Origin: fromRecord, Offset: 8, Size: 4}, "sector": {Origin: fromRecord, Offset: 16, Size: 8},
		"ret":   {Origin: fromRecord, Offset: 40, Size: 8, IsSigned: 1},
		"errno": {Origin: fromRecord, Offset: 40, Size: 8, IsSigned: 1, IsError: 1},
		"name":  {Origin: fromRecord, Offset: 72, Size: 8},
		"cpu":   {Origin: fromCpu, Size: 4}, "comm": {Origin: fromComm},
	} {
		if got, err := at(probefile.Field{Name: name}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"nothing": "the tracepoint has no field nothing; its numbers are bytes, dev, ioprio, name, ret, sector",
		"rwbs":    "the field rwbs is not a number of at most 8 bytes", "cmd": "the field cmd is not a number of at most 8 bytes",
		"flags": "the field flags is not a number of at most 8 bytes", "common_pid": "the tracepoint has no field common_pid; its numbers are bytes, dev, ioprio, name, ret, sector",
	} {
		if _, err := at(probefile.Field{Name: name}); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDescriptionOfATracepoint(t *testing.T) {
	sys := t.TempDir()
	target := probefile.Target{Category: "block", Name: "block_rq_issue"}
	read := func() string {
		s, err := tracepointFormat(hostfs.At(sys), target)
		if err != nil {
			return err.Error()
		}
		return s
	}
	if got := read(); !strings.HasPrefix(got, "tracefs is not mounted") {
		t.Error(got)
	}
	events := filepath.Join(sys, "kernel/debug/tracing/events")
	if err := os.MkdirAll(filepath.Join(events, "block/block_rq_issue"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := read(); !strings.HasPrefix(got, "this kernel has no tracepoint block/block_rq_issue") {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(events, "block/block_rq_issue/format"), []byte(format), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != format {
		t.Error(got)
	}
}

func TestFieldsOfAFunction(t *testing.T) {
	for name, want := range map[string]fetch{
		"arg1": {Origin: fromRegister, Offset: 112, Size: 8}, "arg4": {Origin: fromRegister, Offset: 88, Size: 8}, "arg6": {Origin: fromRegister, Offset: 64, Size: 8},
		"return": {Origin: fromRegister, Offset: 80, Size: 8}, "errno": {Origin: fromRegister, Offset: 80, Size: 4, IsSigned: 1, IsError: 1},
		"duration": {Origin: fromDuration},
	} {
		if got, err := ofFunction(probefile.Field{Name: name}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, _ := ofFunction(probefile.Field{Name: "arg2", Size: 4, Signed: true}); got != (fetch{Origin: fromRegister, Offset: 104, Size: 4, IsSigned: 1}) {
		t.Errorf("%+v", got)
	}
}

// The operands are those that GCC and clang write for the macros of sys/sdt.h.
func TestOperands(t *testing.T) {
	for s, want := range map[string]fetch{
		"8@%rdi": {Origin: fromRegister, Offset: 112, Size: 8}, "-4@%eax": {Origin: fromRegister, Offset: 80, Size: 4, IsSigned: 1},
		"4@%r10d": {Origin: fromRegister, Offset: 56, Size: 4}, "-1@%sil": {Origin: fromRegister, Offset: 104, Size: 1, IsSigned: 1},
		"1@%al": {Origin: fromRegister, Offset: 80, Size: 1}, "2@%cx": {Origin: fromRegister, Offset: 88, Size: 2}, "1@%r8b": {Origin: fromRegister, Offset: 72, Size: 1},
		"-4@$-5": {Origin: fromConstant, Size: 4, IsSigned: 1, Add: -5}, "8@$0x10": {Origin: fromConstant, Size: 8, Add: 16},
		"8@-20(%rbp)": {Origin: fromMemory, Offset: 32, Size: 8, Add: -20}, "-4@(%rsp)": {Origin: fromMemory, Offset: 152, Size: 4, IsSigned: 1},
		"4@0x18(%r15)": {Origin: fromMemory, Offset: 0, Size: 4, Add: 24},
	} {
		if got, err := operand(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "8", "8@", "3@%rdi", "8f@%xmm0", "8@%xmm0", "8@%eax", "4@%al", "1@%ah", "8@8(%rax,%rbx,4)", "8@counter(%rip)", "8@8(%rip)", "8@%rip", "8@(%eax)", "8@--5(%rax)", "4@$x", "16@%rax",
	} {
		if got, err := operand(s); err == nil {
			t.Errorf("%q: %+v", s, got)
		}
	}
	at := ofUSDT("-4@%eax 8@%rsi")
	if got, err := at(probefile.Field{Name: "arg2"}); err != nil || got.Offset != 104 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := at(probefile.Field{Name: "arg3"}); err == nil || err.Error() != "the USDT probe has 2 arguments, and no arg3" {
		t.Error(err)
	}
}

// FuzzForeign: the description of a tracepoint comes from the kernel, and operands from any file.
func FuzzForeign(f *testing.F) {
	f.Add(format, "dev")
	f.Add("-4@%eax 8@-20(%rbp)", "arg2")
	f.Fuzz(func(t *testing.T, foreign, name string) {
		for _, at := range []locator{ofRecord(foreign), ofUSDT(foreign)} {
			got, err := at(probefile.Field{Name: name})
			if err != nil || got.Origin == fromComm {
				continue
			}
			if got.Size != 1 && got.Size != 2 && got.Size != 4 && got.Size != 8 || got.Origin == fromNothing {
				t.Errorf("%q of %q: %+v", name, foreign, got)
			}
			if got.Origin != fromRecord && got.Offset > 152 || got.Offset > 99999 {
				t.Errorf("%q of %q is outside of the registers: %+v", name, foreign, got)
			}
		}
	})
}

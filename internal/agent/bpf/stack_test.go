// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// stackOf returns the bytes of stack that each function of a program uses, and which functions it calls.
func stackOf(program asm.Instructions) (bytes map[string]int, calls map[string][]string) {
	bytes, calls = map[string]int{}, map[string][]string{}
	name, copied := "", map[asm.Register]bool{} // registers that point to the end of the stack
	for _, in := range program {
		if s := in.Symbol(); s != "" && !strings.HasPrefix(s, "LBB") {
			name, copied = s, map[asm.Register]bool{}
		}
		used := 0
		class := in.OpCode.Class()
		switch {
		case in.IsFunctionCall():
			calls[name] = append(calls[name], in.Reference())
		case class.IsLoad() && in.Src == asm.RFP, class.IsStore() && in.Dst == asm.RFP:
			used = -int(in.Offset)
		case class == asm.ALU64Class && in.OpCode.ALUOp() == asm.Mov:
			copied[in.Dst] = in.OpCode.Source() == asm.RegSource && in.Src == asm.RFP
		case class == asm.ALU64Class && in.OpCode.ALUOp() == asm.Add && copied[in.Dst]:
			used, copied[in.Dst] = -int(in.Constant), false
		}
		bytes[name] = max(bytes[name], used)
	}
	return bytes, calls
}

// The verifier of 6.1 adds up the stack of a program and of what it calls, each in steps of 32 bytes
// (check_max_stack_depth in kernel/bpf/verifier.c). Later kernels count less.
func TestStacksFitLinux61(t *testing.T) {
	const limit, step = 512, 32
	programs := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".bpf.o") {
			return err
		}
		spec, err := ebpf.LoadCollectionSpec(path)
		if err != nil {
			return err
		}
		for name, p := range spec.Programs {
			bytes, calls := stackOf(p.Instructions)
			var deepest func(function string) int
			deepest = func(function string) int {
				below := 0
				for _, called := range calls[function] {
					below = max(below, deepest(called))
				}
				return (max(bytes[function], 1)+step-1)/step*step + below
			}
			programs++
			if n := deepest(name); n > limit {
				t.Errorf("%s: program %s has a stack of %d bytes, the limit is %d", path, name, n, limit)
			}
		}
		return nil
	})
	if err != nil || programs < 100 {
		t.Fatalf("%d programs, %v", programs, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf/btf"
)

// Types are the types of the running kernel and of some of its modules, for programs that were loaded before the modules.
type Types struct{ specs []*btf.Spec }

// ReadTypes reads the types of modules and of the kernel. Modules that are not loaded, or are built in, have no types of
// their own. Reading takes 20 ms, and memory that is free afterwards.
func ReadTypes(modules ...string) (*Types, error) {
	t := &Types{}
	for _, name := range modules {
		spec, err := btf.LoadKernelModuleSpec(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the types of module %s: %w", name, err)
		}
		t.specs = append(t.specs, spec)
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's types: %w", err)
	}
	t.specs = append(t.specs, kernel)
	return t, nil
}

// Offset returns the offset in bytes of a field in a structure. Path names the fields from the outermost. Members without a
// name are searched. It returns false if there is no such field, or if it is a bit field.
func (t *Types) Offset(structure string, path ...string) (int, bool) {
	for _, spec := range t.specs {
		var s *btf.Struct
		if spec.TypeByName(structure, &s) == nil {
			return offsetIn(s, path)
		}
	}
	return 0, false
}

// deepest bounds the recursion into members without a name.
const deepest = 8

func offsetIn(of btf.Type, path []string) (int, bool) {
	at := 0
	for _, name := range path {
		member, offset, ok := member(of, name, deepest)
		if !ok {
			return 0, false
		}
		of, at = member, at+offset
	}
	return at, true
}

func member(of btf.Type, name string, depth int) (btf.Type, int, bool) {
	var members []btf.Member
	switch of := btf.UnderlyingType(of).(type) {
	case *btf.Struct:
		members = of.Members
	case *btf.Union:
		members = of.Members
	}
	for _, m := range members {
		if m.Name == name && m.BitfieldSize == 0 {
			return m.Type, int(m.Offset.Bytes()), true
		}
		if m.Name == "" && depth > 0 {
			if found, at, ok := member(m.Type, name, depth-1); ok {
				return found, at + int(m.Offset.Bytes()), true
			}
		}
	}
	return nil, 0, false
}

// Argument returns which argument of a tracepoint is a pointer to a structure, from 0.
func (t *Types) Argument(tracepoint, structure string) (int, bool) {
	for _, spec := range t.specs {
		var def *btf.Typedef
		if spec.TypeByName("btf_trace_"+tracepoint, &def) != nil {
			continue
		}
		pointer, ok := def.Type.(*btf.Pointer)
		if !ok {
			return 0, false
		}
		proto, ok := pointer.Target.(*btf.FuncProto)
		if !ok {
			return 0, false
		}
		for i, p := range proto.Params {
			to, ok := btf.UnderlyingType(p.Type).(*btf.Pointer)
			if !ok || i == 0 { // the first one is the tracepoint's own
				continue
			}
			if s, ok := btf.UnderlyingType(to.Target).(*btf.Struct); ok && s.Name == structure {
				return i - 1, true
			}
		}
		return 0, false
	}
	return 0, false
}

// HasFunction reports whether the kernel has a function of its own, which a fentry program could attach to.
func (t *Types) HasFunction(name string) bool {
	for _, spec := range t.specs {
		var f *btf.Func
		if spec.TypeByName(name, &f) == nil {
			return true
		}
	}
	return false
}

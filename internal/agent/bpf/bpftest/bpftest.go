// SPDX-License-Identifier: Apache-2.0

// Package bpftest holds Go records to those of an eBPF object that they mirror. It is for tests only.
package bpftest

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Mirror fails the test when the Go record does not have the members of the object's record of that name:
// the same names but for case and underscores, at the same places, and the same size. A member `_` mirrors
// any name.
func Mirror(t *testing.T, object []byte, name string, mirror any) {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	var s *btf.Struct
	if err := spec.Types.TypeByName(name, &s); err != nil {
		t.Errorf("struct %s: %v", name, err)
		return
	}
	m := reflect.TypeOf(mirror)
	if uintptr(s.Size) != m.Size() {
		t.Errorf("struct %s has %d bytes, its mirror %d", name, s.Size, m.Size())
	}
	if len(s.Members) != m.NumField() {
		t.Errorf("struct %s has %d members, its mirror %d", name, len(s.Members), m.NumField())
		return
	}
	for i, member := range s.Members {
		field := m.Field(i)
		if field.Name != "_" && !strings.EqualFold(field.Name, strings.ReplaceAll(member.Name, "_", "")) {
			t.Errorf("member %d of struct %s is %s, in its mirror %s", i, name, member.Name, field.Name)
		}
		if uintptr(member.Offset.Bytes()) != field.Offset {
			t.Errorf("%s.%s is at %d, in its mirror at %d", name, member.Name, member.Offset.Bytes(), field.Offset)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"debug/elf"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// A kernel that hides its addresses must not prevent a program from loading. So all kernel symbols are weak, and withoutAddresses
// changes the instructions that load them, and no others.
func TestHiddenAddresses(t *testing.T) {
	var found []string
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".bpf.o") {
			return err
		}
		object, err := elf.Open(path)
		if err != nil {
			return err
		}
		defer object.Close()
		symbols, err := object.Symbols()
		if err != nil {
			return err
		}
		var kernel []string
		for _, s := range symbols {
			if s.Section == elf.SHN_UNDEF && s.Name != "" {
				kernel = append(kernel, s.Name)
				if elf.ST_BIND(s.Info) != elf.STB_WEAK {
					t.Errorf("%s: %s is not weak", path, s.Name)
				}
			}
		}
		spec, err := ebpf.LoadCollectionSpec(path)
		if err != nil {
			return err
		}
		for name, p := range spec.Programs {
			before := slices.Clone(p.Instructions)
			withoutAddresses(p.Instructions)
			for i, was := range before {
				is := p.Instructions[i]
				wanted := was.OpCode.IsDWordLoad() && slices.Contains(kernel, was.Reference())
				if wanted {
					found = append(found, was.Reference())
				}
				if changed := is.Reference() != was.Reference() || is.Symbol() != was.Symbol(); changed != wanted || wanted && is.Constant != 0 {
					t.Errorf("%s: program %s: %v became %v", path, name, was, is)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(found, "__per_cpu_offset") {
		t.Errorf("the programs load the addresses of %q", found)
	}
}

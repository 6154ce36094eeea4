// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Module is a kernel module that the machine loads before the command runs.
type Module struct {
	Name   string
	Object []byte
	Params string
}

// Modules returns the named modules of the kernel's package and their dependencies, in the order of loading. Built-in
// modules are omitted.
func (k Kernel) Modules(ctx context.Context, names ...string) ([]Module, error) {
	builtin, err := os.ReadFile(filepath.Join(k.modules(), "modules.builtin"))
	if err != nil {
		return nil, err
	}
	in := map[string]bool{}
	for line := range strings.FieldsSeq(string(builtin)) {
		in[moduleName(line)] = true
	}
	files, err := k.moduleFiles()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(names, func(name string) bool { return !in[name] && files[name] == "" }) {
		// Earlier versions of this program unpacked fewer modules.
		if err := k.fetch(ctx); err != nil {
			return nil, err
		}
		if files, err = k.moduleFiles(); err != nil {
			return nil, err
		}
	}
	var list []Module
	var add func(name string) error
	add = func(name string) error {
		if in[name] || slices.ContainsFunc(list, func(m Module) bool { return m.Name == name }) {
			return nil
		}
		if files[name] == "" {
			return fmt.Errorf("kernel %s has no module %s", k.Release, name)
		}
		object, err := readModule(ctx, files[name])
		if err != nil {
			return err
		}
		for _, dep := range depends(object) {
			if err := add(dep); err != nil {
				return fmt.Errorf("%s needs %s: %w", name, dep, err)
			}
		}
		list = append(list, Module{Name: name, Object: object})
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// moduleFiles returns the unpacked modules by name.
func (k Kernel) moduleFiles() (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(k.modules(), func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.Contains(entry.Name(), ".ko") {
			files[moduleName(path)] = path
		}
		return err
	})
	return files, err
}

// moduleName returns the kernel's name of the module in a file: virtio-net.ko.xz is virtio_net.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func readModule(ctx context.Context, path string) ([]byte, error) {
	if strings.HasSuffix(path, ".xz") {
		out, err := output(ctx, "", "xz", "-dc", path)
		return []byte(out), err
	}
	return os.ReadFile(path)
}

// depends reads the dependencies out of a module's .modinfo section.
func depends(object []byte) []string {
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil || file.Section(".modinfo") == nil {
		return nil
	}
	info, err := file.Section(".modinfo").Data()
	if err != nil {
		return nil
	}
	for field := range strings.SplitSeq(string(info), "\x00") {
		if list, found := strings.CutPrefix(field, "depends="); found && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ",")
		}
	}
	return nil
}

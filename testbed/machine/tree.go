// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Tree adds a file or a folder of the host. A dynamically linked program brings its loader and libraries, at the
// same paths as on the host.
func (a *Archive) Tree(name, from string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		to := path.Join(name, filepath.ToSlash(rel))
		switch {
		case entry.IsDir():
			a.Dir(to, 0o755)
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			a.link(to, target)
		case entry.Type().IsRegular():
			a.File(to, file)
			return a.libraries(file)
		}
		return nil
	})
}

// libraries adds the libraries of a dynamically linked program.
func (a *Archive) libraries(program string) error {
	dynamic, err := isDynamic(program)
	if err != nil || !dynamic {
		return err
	}
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ldd %s: %w\n%s", program, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "not found") {
			return fmt.Errorf("%s: %s", program, strings.TrimSpace(line))
		}
		for field := range strings.FieldsSeq(line) {
			if strings.HasPrefix(field, "/") {
				a.File(field, field)
				break
			}
		}
	}
	return nil
}

// isDynamic reports whether a file is an ELF program or library that needs a loader or libraries.
func isDynamic(file string) (bool, error) {
	f, err := elf.Open(file)
	if format := (*elf.FormatError)(nil); errors.As(err, &format) || errors.Is(err, io.EOF) {
		return false, nil // no ELF, or shorter than its magic number
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return f.Type == elf.ET_DYN && f.SectionByType(elf.SHT_DYNAMIC) != nil && !isStaticPIE(f), nil
}

// isStaticPIE reports whether a shared object needs no library. ldd prints nothing for it.
func isStaticPIE(f *elf.File) bool {
	needed, err := f.DynString(elf.DT_NEEDED)
	return err == nil && len(needed) == 0
}

// Busybox adds the host's static busybox with links for all its commands.
func (a *Archive) Busybox() error {
	from, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("the guest's shell is busybox (Debian: busybox-static): %w", err)
	}
	dynamic, err := isDynamic(from)
	if err != nil {
		return err
	}
	if dynamic {
		if err := a.libraries(from); err != nil {
			return err
		}
	}
	out, err := exec.Command(from, "--list").Output()
	if err != nil {
		return fmt.Errorf("listing the commands of busybox: %w", err)
	}
	a.File("/bin/busybox", from)
	for name := range strings.FieldsSeq(string(out)) {
		a.link("/bin/"+name, "busybox")
	}
	a.Bytes("/etc/passwd", 0o644, []byte("root:x:0:0:root:/job:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"))
	a.Bytes("/etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n"))
	a.Bytes("/etc/hosts", 0o644, []byte("127.0.0.1 localhost testbed\n"))
	return nil
}

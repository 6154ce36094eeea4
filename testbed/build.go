// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/teescope/teescope/testbed/machine"
)

// tree is the directory of the sources and the directory of the build results. A result gets its name when it is
// complete. So an interrupted build continues where it stopped.
type tree struct{ root, out string }

func newTree(root string) tree { return tree{root, filepath.Join(root, ".cache")} }

func (t tree) source(path ...string) string {
	return filepath.Join(append([]string{t.root, "testbed"}, path...)...)
}

func (t tree) built(path ...string) string {
	return filepath.Join(append([]string{t.out, "testbed"}, path...)...)
}

func (t tree) store() machine.Store { return machine.Store(filepath.Join(t.out, "vm")) }

// findTree finds the source tree at or above a directory.
func findTree(dir string) (tree, error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "testbed", "module", "Kbuild")); err == nil {
			return newTree(at), nil
		}
		if at == filepath.Dir(at) {
			return tree{}, fmt.Errorf("no source tree of the testbed at or above %s", dir)
		}
	}
}

func buildCommand(ctx context.Context, stderr io.Writer, args []string) error {
	flags := flag.NewFlagSet("testbed build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", ".", "the source `tree`, or a folder in it")
	kernel := flags.String("kernel", "", "build for this kernel `version` only: 6.1 or 6.12")
	if err := flags.Parse(args); err != nil {
		return err
	}
	abs, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	t, err := findTree(abs)
	if err != nil {
		return err
	}
	versions := []string{"6.1", "6.12"}
	if *kernel != "" {
		versions = []string{*kernel}
	}
	for _, version := range versions {
		k, err := t.store().Kernel(ctx, version)
		if err != nil {
			return err
		}
		if _, err := t.module(ctx, k); err != nil {
			return err
		}
	}
	return errors.Join(t.guest(ctx), t.enclaves(ctx))
}

// featureSGX2 is X86_FEATURE_SGX2 of the kernel's cpufeatures.h.
const featureSGX2 = 11*32 + 9

// module is the module for one kernel.
type module struct {
	object string
	sgx2   string // a file with the parameter that turns SGX2 on
}

// module builds swsgx.ko for a kernel if a source is newer. It does not install anything.
func (t tree) module(ctx context.Context, k machine.Kernel) (module, error) {
	dir := t.built("module-" + k.Release)
	m := module{object: filepath.Join(dir, "swsgx.ko"), sgx2: filepath.Join(dir, "sgx2")}
	sources, err := filepath.Glob(t.source("module", "*"))
	if err != nil || newer(m.sgx2, sources) {
		return m, err
	}
	headers, err := k.Headers(ctx)
	if err != nil {
		return m, err
	}
	return m, whole(dir, func(temp string) error {
		if err := copyFiles(temp, sources); err != nil {
			return err
		}
		return buildModule(ctx, k, headers, temp)
	})
}

// buildModule builds the module from the sources in a directory, and leaves its parameter for SGX2 there.
func buildModule(ctx context.Context, k machine.Kernel, headers, dir string) error {
	// Without CONFIG_DEBUG_INFO_BTF_MODULES: BTF of modules needs a vmlinux, which no package has.
	err := quiet(exec.CommandContext(ctx, "make", "-s", "-C", headers, "M="+dir, "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"))
	if err != nil {
		return fmt.Errorf("building the module: %w", err)
	}
	if err := quiet(exec.CommandContext(ctx, "strip", "--strip-debug", filepath.Join(dir, "swsgx.ko"))); err != nil {
		return err
	}
	sites, err := k.FeatureSites(ctx, featureSGX2)
	if err != nil {
		return fmt.Errorf("looking for SGX2 in the kernel: %w", err)
	}
	var offsets []string
	for _, site := range sites {
		offsets = append(offsets, fmt.Sprintf("%#x", site))
	}
	return os.WriteFile(filepath.Join(dir, "sgx2"), []byte("sgx2="+strings.Join(offsets, ",")), 0o644)
}

// missing builds the programs that do not exist.
func (t tree) missing(ctx context.Context) error {
	var errs []error
	if _, err := os.Stat(t.built("guest")); err != nil {
		errs = append(errs, t.guest(ctx))
	}
	return errors.Join(append(errs, t.enclaves(ctx))...)
}

// guest builds the first process of the machine.
func (t tree) guest(ctx context.Context) error {
	return whole(t.built("guest"), func(temp string) error {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", temp, "./testbed/guest")
		cmd.Dir = t.root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		return quiet(cmd)
	})
}

// enclaves builds the enclave programs. Their Makefile writes each under another name first.
func (t tree) enclaves(ctx context.Context) error {
	return quiet(exec.CommandContext(ctx, "make", "-s", "-C", t.source("enclaves"), "OUT="+t.built("enclaves")))
}

// whole builds a file or directory under a temporary name beside its own, and renames it at the end.
func whole(name string, build func(temp string) error) error {
	parent := filepath.Dir(name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, filepath.Base(name))
	if err := build(temp); err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() { // a rename replaces only files
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	return os.Rename(temp, name)
}

func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, bytes.TrimSpace(out))
	}
	return nil
}

// newer reports whether a built file exists and is newer than all sources.
func newer(built string, sources []string) bool {
	b, err := os.Stat(built)
	if err != nil {
		return false
	}
	for _, source := range sources {
		if s, err := os.Stat(source); err != nil || s.ModTime().After(b.ModTime()) {
			return false
		}
	}
	return true
}

// copyFiles makes a new directory hold these sources.
func copyFiles(dir string, files []string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), ".") {
			continue
		}
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

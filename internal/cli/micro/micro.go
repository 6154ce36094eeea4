// SPDX-License-Identifier: Apache-2.0

// Package micro is "teescope bench": small benchmarks of what costs differently in an enclave. They are one program in C, because the
// runtime of Go makes threads and system calls of its own. The program is compiled where it is needed.
package micro

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// source is the program.
//
//go:embed program/micro.c
var source []byte

// Names returns the names of the benchmarks.
func Names() []string {
	return []string{"threads", "fork", "syscalls", "pipes", "files", "malloc", "clock"}
}

// compilers are tried in this order.
var compilers = []string{"cc", "gcc", "clang"}

// Options select the benchmark.
type Options struct {
	Name     string        // one of Names
	For      time.Duration // of the measurement
	Out, Err io.Writer
}

// Build compiles the program as a static one.
func Build(ctx context.Context, to string) error {
	compiler := ""
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		return errors.New("there is no C compiler: install gcc and the static C library (in Debian, gcc and libc6-dev)")
	}
	dir, err := os.MkdirTemp("", "teescope-bench-")
	if err != nil {
		return fmt.Errorf("compiling the benchmark: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "micro.c")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		return fmt.Errorf("compiling the benchmark: %w", err)
	}
	if out, err := exec.CommandContext(ctx, compiler, "-O2", "-static", "-pthread", "-o", to, file).CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the benchmark: %w\n%.2000s", err, out)
	}
	return nil
}

// Run compiles the program, runs one benchmark and passes on what it prints. It writes how that compares with the references to Err, so
// that Out has the figures of this machine only.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "teescope-bench-")
	if err != nil {
		return fmt.Errorf("running the benchmark: %w", err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "micro")
	if err := Build(ctx, program); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, program, o.Name, strconv.FormatFloat(o.For.Seconds(), 'g', -1, 64))
	var out bytes.Buffer
	c.Stdout, c.Stderr = io.MultiWriter(o.Out, &out), o.Err
	if err := c.Run(); err != nil {
		return fmt.Errorf("running the benchmark %s: %w", o.Name, err)
	}
	if here, ok := measured(out.Bytes()); ok {
		compare(o.Err, o.Name, here)
	}
	return nil
}

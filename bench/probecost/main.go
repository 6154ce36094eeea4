// SPDX-License-Identifier: Apache-2.0

// Command probecost writes the table of the cost of each eBPF program (docs/dev/probe-cost.md): the number of
// instructions in its object, and nanoseconds per event. The nanoseconds are of one machine at one time. The command
// does not judge: CI compares the instructions, and the nanoseconds are a note.
//
//	probecost FILE                      count the instructions and keep the nanoseconds
//	probecost -measure teescope FILE    also measure the nanoseconds (root; nothing else should run)
//	probecost -virtual METRICS FILE     read the nanoseconds from metrics of an agent in the virtual SGX machine
//
// Instructions are those of the committed object, before the kernel removes dead code. They are the same on every kernel.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stderr, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "probecost:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stderr io.Writer, args []string) error {
	set := flag.NewFlagSet("probecost", flag.ContinueOnError)
	set.SetOutput(stderr)
	binary := set.String("measure", "", "the teescope binary to measure; empty keeps what was measured before")
	virtual := set.String("virtual", "", "an `exposition` of an agent in the virtual SGX machine")
	seconds := set.Duration("for", 20*time.Second, "how long to measure")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return errors.New("name the file to write")
	}
	file := set.Arg(0)
	programs, err := count(".")
	if err != nil {
		return err
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	known := parse(string(old))
	if *binary != "" {
		if known.here, known.whenHere, err = measure(ctx, *binary, *seconds); err != nil {
			return fmt.Errorf("measuring: %w", err)
		}
	}
	if *virtual != "" {
		if known.virtual, known.whenVirtual, err = readVirtual(*virtual); err != nil {
			return fmt.Errorf("reading what was measured in the virtual SGX machine: %w", err)
		}
	}
	return os.WriteFile(file, []byte(table(programs, known)), 0o644)
}

// program is one row: the object, how it is attached, and its size in instructions of 8 bytes, alone and with the
// functions that it calls.
type program struct {
	object, name, section string
	own, all              int
}

// count reads every object of the collectors, TEE backends and the profiler, and for comparison those of bench itself.
func count(root string) ([]program, error) {
	var all []program
	for _, pattern := range []string{"internal/agent/collector/*/*.bpf.o", "internal/agent/tee/*/*/*.bpf.o", "internal/agent/tee/*/*.bpf.o", "internal/agent/*/*.bpf.o", "bench/*.bpf.o"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			spec, err := ebpf.LoadCollectionSpec(file)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			for _, p := range spec.Programs {
				all = append(all, program{filepath.ToSlash(name), p.Name, p.SectionName, own(p.Instructions), size(p.Instructions)})
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no eBPF objects here: run it at the top of the source tree")
	}
	slices.SortFunc(all, func(a, b program) int {
		return strings.Compare(a.object+" "+a.name, b.object+" "+b.name)
	})
	return all, nil
}

func size(instructions asm.Instructions) int { return int(instructions.Size() / asm.InstructionSize) }

// own returns the size up to the first called function. The program itself comes first and runs each time.
func own(instructions asm.Instructions) int {
	called := instructions.FunctionReferences()
	for i := range instructions {
		if slices.Contains(called, instructions[i].Symbol()) {
			return size(instructions[:i])
		}
	}
	return size(instructions)
}

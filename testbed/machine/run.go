// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/teescope/teescope/testbed/machine/job"
)

// Machine configures a virtual machine.
type Machine struct {
	Kernel    Kernel
	Guest     string // the program of testbed/guest, which becomes the first process
	CPUs      int
	MemoryMiB int
	Reserve   []int // MiB that the kernel leaves alone at the end of each NUMA node; one for each node
	Append    string
	Init      []string // the command that becomes the first process instead of Guest, which then is its child; may be empty
	Forwards  []Forward
	Tap       string    // a tap interface of the host, to which eth0 is connected instead of Forwards. The command sets eth0 up
	Disks     []string  // files that the guest reads as /dev/vda and so on, through bounce buffers if its kernel is configured for it
	Threads   bool      // emulate each CPU by a thread of its own
	Console   io.Writer // the kernel's console; may be nil
}

// Forward makes a TCP port of the guest reachable at a port of the host's loopback.
type Forward struct{ Host, Guest int }

// Command is the command to run and its files.
type Command struct {
	Argv           []string
	Env            []string
	Modules        []Module               // loaded before it
	Files          func(a *Archive) error // adds to the guest's file system; may be nil
	Stdout, Stderr io.Writer
	Out            []string // files and folders to bring back, relative to the working directory
	To             string   // where they go
}

// Result is the result of the command.
type Result struct {
	Exit    int
	Trouble []string // warnings and oopses of the guest's kernel
}

// tries is the number of boots if the machine dies or hangs before its first process runs. About one boot in
// sixty does so under QEMU's emulation, for any command.
const tries = 3

// bootLimit is how long a boot may take; one takes 5 to 8 s on an idle machine, and minutes with a tenth of a processor.
const bootLimit = 5 * time.Minute

// errBoot means that the command did not begin.
var errBoot = errors.New("the machine died before its first process ran")

// Run boots the machine and runs the command. An error means that the command did not run to its end.
func (m Machine) Run(ctx context.Context, c Command) (Result, error) {
	temp, err := os.MkdirTemp("", "testbed-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(temp)
	initrd := filepath.Join(temp, "initrd")
	if err := m.writeImage(ctx, initrd, c); err != nil {
		return Result{}, fmt.Errorf("building the guest's file system: %w", err)
	}
	for try := 1; ; try++ {
		result, err := m.boot(ctx, initrd, c)
		if !errors.Is(err, errBoot) || try == tries || ctx.Err() != nil {
			return result, err
		}
	}
}

func (m Machine) writeImage(ctx context.Context, path string, c Command) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	a := newArchive(f)
	a.File("/init", m.Guest)
	a.Dir(job.Dir, 0o755)
	if c.Files != nil {
		if err := c.Files(a); err != nil {
			return err
		}
	}
	j := job.Job{Hostname: "testbed", Argv: c.Argv, Env: c.Env, Out: c.Out, Init: m.Init}
	names := []string{"virtio_pci", "virtio_console"}
	if len(m.Forwards) > 0 || m.Tap != "" {
		names = append(names, "virtio_net")
	}
	if len(m.Disks) > 0 {
		names = append(names, "virtio_blk")
	}
	modules, err := m.Kernel.Modules(ctx, names...)
	if err != nil {
		return err
	}
	j.Ports = len(modules)
	for _, mod := range append(modules, c.Modules...) {
		file := "/lib/modules/" + mod.Name + ".ko"
		a.Bytes(file, 0o644, mod.Object)
		j.Modules = append(j.Modules, job.Module{File: file, Params: mod.Params})
	}
	for i, f := range m.Forwards {
		j.Relays = append(j.Relays, job.Relay{Listen: relayPort + i, To: f.Guest})
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	a.Bytes(job.File, 0o644, text)
	return errors.Join(a.Close(), f.Close())
}

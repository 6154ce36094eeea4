// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teescope/teescope/testbed/machine"
)

// options are the options of "testbed run".
type options struct {
	root, kernel, swsgx, append, to  string
	tap                              string
	epc                              sizes
	cpus, memory, disk               int
	in, out, env, modules            list
	ports                            forwards
	sgx, sgx2, kvm, threads, console bool
	timeout                          time.Duration
	argv                             []string
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("testbed run", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.root, "root", ".", "the source `tree`, or a folder in it")
	flags.StringVar(&o.kernel, "kernel", "6.12", "kernel `version`: 6.1 or 6.12")
	o.epc = sizes{64}
	flags.Var(&o.epc, "epc", "`MiB` of each EPC section, comma-separated; each is on a NUMA node of its own")
	flags.IntVar(&o.cpus, "cpus", 2, "processors")
	flags.IntVar(&o.memory, "mem", 1024, "`MiB` of memory besides the EPC")
	flags.Var(&o.in, "in", "bring a file or folder into the machine: `HOST[:GUEST]`, default /job/NAME; a program brings its libraries (repeatable)")
	flags.Var(&o.out, "out", "bring a file or folder back, relative to /job (repeatable)")
	flags.StringVar(&o.to, "to", ".", "the `folder` on the host for what comes back")
	flags.Var(&o.ports, "port", "forward `[HOST:]GUEST`, a TCP port of the host's loopback, to that of the guest (repeatable)")
	flags.StringVar(&o.tap, "tap", "", "connect eth0 to a tap `interface` of the host instead; the command sets eth0 up")
	flags.Var(&o.modules, "module", "load a `module` of the kernel: overlay, bridge or veth (repeatable)")
	flags.Var(&o.env, "env", "`NAME=VALUE` for the command (repeatable)")
	flags.BoolVar(&o.sgx, "sgx", true, "load the module; without, an ordinary machine boots")
	flags.BoolVar(&o.sgx2, "sgx2", true, "a processor with SGX2: enclaves can grow")
	flags.BoolVar(&o.kvm, "kvm", false, "load KVM: the machine runs virtual machines of its own, on an emulated AMD processor")
	flags.IntVar(&o.disk, "disk", 0, "`MiB` of an empty disk, /dev/vda; its data goes through bounce buffers with -append swiotlb=512,force")
	flags.StringVar(&o.swsgx, "swsgx", "", "more `parameters` for the module: \"measure=1\"")
	flags.StringVar(&o.append, "append", "", "more for the kernel's command `line`")
	flags.BoolVar(&o.threads, "threads", false, "emulate each processor by its own host thread; sometimes the machine hangs when tracing is switched on")
	flags.BoolVar(&o.console, "console", false, "show the kernel's console")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long all may take")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.argv = flags.Args(); len(o.argv) == 0 {
		return o, errors.New("no command to run")
	}
	if o.tap != "" && len(o.ports) > 0 {
		return o, errors.New("-port needs the network that -tap replaces")
	}
	if o.disk < 0 {
		return o, fmt.Errorf("%d is not a number of MiB", o.disk)
	}
	return o, nil
}

// guestPath is where commands are looked up in the guest.
const guestPath = "/job:/testbed:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func runCommand(ctx context.Context, stdout, stderr io.Writer, args []string) (int, error) {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	m, c, err := o.machine(ctx)
	if err != nil {
		return 0, err
	}
	c.Stdout, c.Stderr = stdout, stderr
	if o.disk > 0 {
		file, err := emptyDisk(o.disk)
		if err != nil {
			return 0, err
		}
		defer func() { _ = os.Remove(file) }()
		m.Disks = []string{file}
	}
	if o.console {
		m.Console = stderr
	}
	result, err := m.Run(ctx, c)
	for _, line := range result.Trouble {
		fmt.Fprintln(stderr, "testbed: the guest's kernel says:", line)
	}
	return result.Exit, err
}

// emptyDisk creates a file of zeros, which takes no space.
func emptyDisk(mib int) (string, error) {
	f, err := os.CreateTemp("", "testbed-disk-")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(f.Truncate(int64(mib)<<20), f.Close())
}

// machine returns the machine that the options describe. It builds missing parts first.
func (o options) machine(ctx context.Context) (machine.Machine, machine.Command, error) {
	var m machine.Machine
	var c machine.Command
	root, err := filepath.Abs(o.root)
	if err != nil {
		return m, c, err
	}
	t, err := findTree(root)
	if err != nil {
		return m, c, err
	}
	k, err := t.store().Kernel(ctx, o.kernel)
	if err != nil {
		return m, c, err
	}
	m = machine.Machine{
		Kernel: k, Guest: t.built("guest"), CPUs: o.cpus, MemoryMiB: o.memory,
		Append: o.append, Forwards: o.ports, Tap: o.tap, Threads: o.threads,
	}
	c = machine.Command{
		Argv: o.argv, Env: append([]string{"PATH=" + guestPath, "HOME=/job", "TERM=dumb"}, o.env...),
		Out: o.out, To: o.to, Files: func(a *machine.Archive) error { return o.files(t, a) },
	}
	if err := t.missing(ctx); err != nil {
		return m, c, err
	}
	if o.kvm {
		o.modules = append(o.modules, "kvm_amd")
	}
	if c.Modules, err = k.Modules(ctx, o.modules...); err != nil {
		return m, c, err
	}
	if !o.sgx {
		return m, c, nil
	}
	m.Reserve = o.epc
	module, err := o.module(ctx, t, m)
	c.Modules = append(c.Modules, module)
	return m, c, err
}

func (o options) module(ctx context.Context, t tree, m machine.Machine) (machine.Module, error) {
	built, err := t.module(ctx, m.Kernel)
	if err != nil {
		return machine.Module{}, err
	}
	object, err := os.ReadFile(built.object)
	if err != nil {
		return machine.Module{}, err
	}
	regions, err := m.Regions()
	if err != nil {
		return machine.Module{}, err
	}
	params := []string{params(regions), o.swsgx}
	if o.sgx2 {
		sgx2, err := os.ReadFile(built.sgx2)
		if err != nil {
			return machine.Module{}, err
		}
		params = append(params, string(sgx2))
	}
	return machine.Module{Name: "swsgx", Object: object, Params: strings.Join(params, " ")}, nil
}

// params returns the module's parameters for EPC sections at these locations.
func params(regions []machine.Region) string {
	var phys, mb, nid []string
	for _, r := range regions {
		phys = append(phys, fmt.Sprintf("0x%x", r.Phys))
		mb = append(mb, fmt.Sprint(r.MiB))
		nid = append(nid, fmt.Sprint(r.Node))
	}
	return fmt.Sprintf("phys=%s mb=%s nid=%s", strings.Join(phys, ","), strings.Join(mb, ","), strings.Join(nid, ","))
}

// files fills the guest's file system: busybox, the enclave programs, and the user's files.
func (o options) files(t tree, a *machine.Archive) error {
	if err := a.Busybox(); err != nil {
		return err
	}
	if err := a.Tree("/testbed", t.built("enclaves")); err != nil {
		return err
	}
	for _, in := range o.in {
		from, to, found := strings.Cut(in, ":")
		if !found {
			abs, err := filepath.Abs(from)
			if err != nil {
				return err
			}
			to = filepath.Join("/job", filepath.Base(abs))
		}
		if err := a.Tree(to, from); err != nil {
			return err
		}
	}
	return nil
}

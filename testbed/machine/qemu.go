// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/teescope/teescope/testbed/machine/job"
)

// relayPort is the guest's first port at which a forwarded port of its loopback is reachable.
const relayPort = 20000

// lowMemory is where the RAM of QEMU's "pc" machine leaves room for PCI devices, in MiB. Up to there
// guest addresses are offsets in RAM.
const lowMemory = 3072

// Region is a piece of RAM that the kernel does not use.
type Region struct {
	Phys uint64
	MiB  int
	Node int
}

// Regions returns the location of the reserved memory, at the end of each node.
func (m Machine) Regions() ([]Region, error) {
	var list []Region
	end := 0
	for node, size := range m.nodes() {
		end += size
		list = append(list, Region{Phys: uint64(end-m.Reserve[node]) << 20, MiB: m.Reserve[node], Node: node})
	}
	if end > lowMemory {
		return nil, fmt.Errorf("memory and EPC are %d MiB together: at most %d are possible", end, lowMemory)
	}
	return list, nil
}

// nodes returns the sizes of the NUMA nodes in MiB.
func (m Machine) nodes() []int {
	var sizes []int
	for _, reserved := range m.Reserve {
		sizes = append(sizes, m.MemoryMiB/len(m.Reserve)+reserved)
	}
	return sizes
}

// args returns QEMU's arguments. The ports' pipes are its descriptors from 3 on.
func (m Machine) args(initrd string) ([]string, error) {
	regions, err := m.Regions()
	if err != nil {
		return nil, err
	}
	thread := "single"
	if m.Threads {
		thread = "multi"
	}
	line := "console=ttyS0 quiet panic=-1 oops=panic" // a panic reboots, and a reboot ends QEMU
	memory := m.MemoryMiB
	for _, r := range regions {
		line += fmt.Sprintf(" memmap=%dM$0x%x", r.MiB, r.Phys)
		memory += r.MiB
	}
	args := []string{
		// One thread emulates all CPUs. With one thread per CPU, QEMU can hang forever when a CPU patches code
		// that another executes, as when a tracepoint is switched on.
		"-accel", "tcg,thread=" + thread,
		// Without a level the highest CPUID leaf is 0xd, and leaf 0x12 returns the data of that leaf.
		"-cpu", "max,level=0x14",
		"-smp", m.smp(), "-m", strconv.Itoa(memory) + "M",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", m.Kernel.image(), "-initrd", initrd, "-append", strings.TrimSpace(line + " " + m.Append),
		"-chardev", "file,id=console,path=/dev/fd/3", "-serial", "chardev:console",
		"-device", "virtio-serial",
	}
	for i, name := range ports() {
		args = append(args, "-chardev", fmt.Sprintf("file,id=%s,path=/dev/fd/%d", name, 4+i),
			"-device", fmt.Sprintf("virtserialport,chardev=%s,name=%s", name, name))
	}
	for i, file := range m.Disks {
		args = append(args, "-drive", fmt.Sprintf("if=none,id=disk%d,format=raw,readonly=on,file=%s", i, file),
			// With this feature the device uses the kernel's DMA interface, which decides whether data is copied.
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d,iommu_platform=on,disable-modern=off,disable-legacy=on", i))
	}
	args = append(args, m.numa()...)
	return append(args, m.network()...), nil
}

func ports() []string {
	return []string{job.PortStdout, job.PortStderr, job.PortFiles, job.PortStatus}
}

// smp gives each processor its own socket if there are several nodes. The kernel warns if threads or cores of one
// socket are on two nodes.
func (m Machine) smp() string {
	if len(m.Reserve) < 2 {
		return strconv.Itoa(m.CPUs)
	}
	return fmt.Sprintf("%d,sockets=%d", m.CPUs, m.CPUs)
}

func (m Machine) numa() []string {
	if len(m.Reserve) < 2 {
		return nil
	}
	var args []string
	for node, size := range m.nodes() {
		numa := fmt.Sprintf("node,nodeid=%d,memdev=ram%d", node, node)
		for cpu := node; cpu < m.CPUs; cpu += len(m.Reserve) {
			numa += fmt.Sprintf(",cpus=%d", cpu)
		}
		args = append(args, "-object", fmt.Sprintf("memory-backend-ram,id=ram%d,size=%dM", node, size), "-numa", numa)
	}
	return args
}

func (m Machine) network() []string {
	if m.Tap != "" {
		return []string{"-netdev", "tap,id=net,script=no,downscript=no,ifname=" + m.Tap, "-device", "virtio-net-pci,netdev=net"}
	}
	if len(m.Forwards) == 0 {
		return nil
	}
	user := "user,id=net,restrict=on" // reachable from the host, without outgoing connections
	for i, f := range m.Forwards {
		user += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%d-:%d", f.Host, relayPort+i)
	}
	return []string{"-netdev", user, "-device", "virtio-net-pci,netdev=net"}
}

// boot runs QEMU once.
func (m Machine) boot(ctx context.Context, initrd string, c Command) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	args, err := m.args(initrd)
	if err != nil {
		return Result{}, err
	}
	console := &tail{also: m.Console}
	var problems tail
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	cmd.Stderr = &problems
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no machine outlives the process that waits for it
	var pipes pipes
	all := receipt{end: func() { _ = cmd.Process.Signal(syscall.SIGTERM) }}
	pipes.to(cmd, func(r io.Reader) error { _, err := io.Copy(console, r); return err })
	pipes.to(cmd, all.counted(job.PortStdout, func(r io.Reader) error { _, err := io.Copy(c.Stdout, r); return err }))
	pipes.to(cmd, all.counted(job.PortStderr, func(r io.Reader) error { _, err := io.Copy(c.Stderr, r); return err }))
	pipes.to(cmd, all.counted(job.PortFiles, func(r io.Reader) error { return untar(r, c.To) }))
	late := time.AfterFunc(bootLimit, cancel)
	defer late.Stop()
	var status job.Status
	up := false
	pipes.to(cmd, func(r io.Reader) error {
		for in := json.NewDecoder(r); ; {
			if err := in.Decode(&status); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				cancel() // the guest waits until the host ends the machine, which it no longer can
				return fmt.Errorf("reading the guest's status: %w", err)
			}
			up = up || status.Up
			late.Stop()
			if status.Ended {
				all.expect(status.Sent)
			}
		}
	})
	if err := pipes.run(cmd); err != nil {
		err = fmt.Errorf("%w\n%s%s", errors.Join(err, context.Cause(ctx)), problems.String(), console.String())
		if !up {
			err = fmt.Errorf("%w: %w", errBoot, err)
		}
		return Result{}, err
	}
	switch {
	case !up:
		return Result{}, fmt.Errorf("%w\n%s", errBoot, console.String())
	case !status.Ended:
		return Result{}, fmt.Errorf("the machine died while the command ran\n%s", console.String())
	case status.Error != "":
		return Result{}, fmt.Errorf("in the guest: %s\n%s", status.Error, console.String())
	}
	return Result{Exit: status.Exit, Trouble: status.Trouble}, nil
}

// receipt ends the machine when everything that the guest has sent was received.
type receipt struct {
	end func()

	mu       sync.Mutex
	got      map[string]int64
	expected map[string]int64 // nil until the guest has reported it
	ended    bool
}

// counted returns a handler of a port's pipe that counts what is read. What handle does not read is read and dropped.
func (c *receipt) counted(port string, handle func(io.Reader) error) func(io.Reader) error {
	return func(r io.Reader) error {
		in := io.TeeReader(r, writerFunc(func(p []byte) { c.add(port, len(p)) }))
		err := handle(in)
		_, _ = io.Copy(io.Discard, in)
		return err
	}
}

func (c *receipt) add(port string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got == nil {
		c.got = map[string]int64{}
	}
	c.got[port] += int64(n)
	c.check()
}

// expect sets the numbers of bytes that the guest has sent.
func (c *receipt) expect(sent map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = sent
	c.check()
}

func (c *receipt) check() {
	if c.expected == nil || c.ended {
		return
	}
	for port, n := range c.expected {
		if c.got[port] < n {
			return
		}
	}
	c.ended = true
	c.end()
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// pipes carry QEMU's output to this program.
type pipes struct {
	writers []*os.File
	readers []func() error
	err     error
}

// to adds a descriptor to the command. The function handles what is written to it.
func (p *pipes) to(cmd *exec.Cmd, handle func(io.Reader) error) {
	r, w, err := os.Pipe()
	if err != nil {
		p.err = err
		return
	}
	p.writers = append(p.writers, w)
	cmd.ExtraFiles = append(cmd.ExtraFiles, w)
	p.readers = append(p.readers, func() error {
		defer r.Close()
		err := handle(r)
		_, _ = io.Copy(io.Discard, r) // QEMU must not wait for a reader that gave up
		return err
	})
}

// run runs the command and reads the pipes to their ends.
func (p *pipes) run(cmd *exec.Cmd) error {
	err := p.err
	if err == nil {
		err = cmd.Start()
	}
	for _, w := range p.writers {
		w.Close()
	}
	errs := make([]error, len(p.readers))
	var wait sync.WaitGroup
	for i, read := range p.readers {
		wait.Go(func() { errs[i] = read() })
	}
	wait.Wait()
	if err != nil {
		return err
	}
	return errors.Join(append(errs, cmd.Wait())...)
}

// tail keeps the end of what is written to it.
type tail struct {
	also io.Writer
	data []byte
}

const tailSize = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p...)
	if extra := len(t.data) - tailSize; extra > 0 {
		t.data = append([]byte(nil), t.data[extra:]...)
	}
	if t.also != nil {
		return t.also.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ReplaceAll(string(t.data), "\r\n", "\n") }

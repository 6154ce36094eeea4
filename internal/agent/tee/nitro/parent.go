// SPDX-License-Identifier: Apache-2.0

package nitro

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// program is the name of the program that runs an enclave on its parent, and holds it open (aws-nitro-enclaves-cli).
	program = "nitro-cli"
	// held is the enclave among the open files of that process (drivers/virt/nitro_enclaves/ne_misc_dev.c). Only processes
	// that may open the driver's device have it, so a process cannot pretend to be an enclave.
	held = "anon_inode:ne-vm"
	// maxFiles, maxArguments and maxName limit the data that is read from that process.
	maxFiles, maxArguments, maxName = 1024, 64, 64
	// maxEnclaves is more than a parent can have (4).
	maxEnclaves = 16
	// maxLooked limits the processes whose open files are inspected: anyone can name processes like this.
	maxLooked = 64
)

// errMany means that the number of enclaves is not known.
var errMany = errors.New("too many processes have the name " + program + ", so not all are inspected")

// enclave has the properties of an enclave from the arguments of nitro-cli. A number is 0 if they do not contain it.
type enclave struct {
	pid    int
	name   string
	cid    uint64
	cpus   uint64
	memory uint64 // bytes
	silent bool   // its process did not answer: nothing else is known
}

// enclaves returns the enclaves of this machine. With errMany there may be more: users and control groups share the inspections, so one of
// them cannot hide the enclaves of others.
func (b *Backend) enclaves() ([]enclave, error) {
	proc := hostfs.At(b.opts.Roots.Proc)
	pids, err := proc.Processes()
	if err != nil {
		return nil, err
	}
	var all []enclave
	looks := tenant.NewQuota(maxLooked)
	for _, pid := range pids {
		p := proc.Process(pid)
		if comm, err := p.Comm(); err != nil || !strings.HasPrefix(comm, program) || len(all) == maxEnclaves {
			continue
		}
		if looks.Take(b.opts.Reads.Tenant(pid)) != nil {
			err = errMany
			continue
		}
		if !p.HasOpen(maxFiles, func(target string) bool { return target == held }) {
			continue
		}
		args, unanswered := reader.Of(b.opts.Reads, pid, func() ([]string, error) { return p.Args(maxArguments) })
		one := describe(pid, args)
		one.silent = unanswered != nil
		all = append(all, one)
	}
	return all, err
}

// describe reads the arguments of "nitro-cli run-enclave". With --config they are in a file, which is not read.
func describe(pid int, args []string) enclave {
	const mib = 1 << 20
	number := func(option string) uint64 {
		n, _ := strconv.ParseUint(hostfs.Option(args, option), 10, 32)
		return n
	}
	return enclave{
		pid: pid, name: text.Short(text.Label(hostfs.Option(args, "enclave-name")), maxName),
		cid: number("enclave-cid"), cpus: number("cpu-count"), memory: number("memory") * mib,
	}
}

// emitParent emits the enclaves of a parent, and the CPUs that it has set aside for them.
func (b *Backend) emitParent(emit func(prometheus.Metric)) error {
	f := b.families
	all, err := b.enclaves()
	if err == nil {
		emit(f.enclaves.Value(float64(len(all))))
	}
	for _, e := range all {
		if e.silent {
			continue // an info without a name would say that it was started without one
		}
		pid, cid := strconv.Itoa(e.pid), ""
		if e.cid != 0 {
			cid = strconv.FormatUint(e.cid, 10)
		}
		emit(f.info.Value(1, pid, e.name, cid))
		if e.cpus != 0 {
			emit(f.cpus.Value(float64(e.cpus), pid))
		}
		if e.memory != 0 {
			emit(f.memory.Value(float64(e.memory), pid))
		}
	}
	return errors.Join(err, b.emitPool(emit))
}

// emitPool emits the number of CPUs that are set aside. A driver that is built in without the parameter has none.
func (b *Backend) emitPool(emit func(prometheus.Metric)) error {
	const longest = 4096
	data, err := hostfs.At(b.opts.Roots.Sys).ReadWhole(longest, "module/nitro_enclaves/parameters/ne_cpus")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	list := strings.TrimSpace(string(data))
	if err != nil || list == "" {
		if err == nil {
			emit(b.families.pool.Value(0))
		}
		return err
	}
	cpus, err := hostfs.ParseCPUs(list)
	if err != nil {
		return fmt.Errorf("reading ne_cpus: %w", err)
	}
	emit(b.families.pool.Value(float64(len(cpus))))
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
)

// tableOf is an OCALL table of a file, by its address as linked.
type tableOf struct {
	file    host.FileID
	address uint64
}

// located is an OCALL table of a process, and where the file has it.
type located struct {
	key     tableKey
	process *process.Process
	file    *file
	address uint64 // as linked
	err     error  // why it is not known
}

// maxTables of one process are looked at.
const maxTables = 16

var errTables = errors.New("too many OCALL tables")

// tables are the OCALL tables of all processes: OCALLs of the SDK are known by them alone.
type tables struct {
	*Functions
	attached map[tableOf]error // nil where all OCALLs of the table are seen
}

// find looks for OCALL tables that have not been seen yet.
func (f tables) find() error {
	found, err := f.unseen()
	if err != nil || len(found) == 0 {
		return err
	}
	var all []located
	for _, key := range found {
		p := f.Processes.Get(key.TGID)
		if p == nil {
			err = errors.Join(err, f.remove("tables", key))
			continue
		}
		table := located{key: key, process: p, err: errTables} // an enclave has one: this program makes them up
		if len(f.state(p).tables) < maxTables {
			table.file, table.address, table.err = f.locate(key, p)
		}
		f.nameECalls(table)
		all = append(all, table)
	}
	err = errors.Join(err, f.Read()) // the ECALLs before the OCALLs were seen
	for _, table := range all {
		if table.err == nil {
			table.err = table.file.addTable(table.address)
		}
		f.state(table.process).tables[table.key.Address] = table.err
		if table.err != nil && !errors.Is(table.err, errTables) {
			f.Log.Info("OCALLs are not all seen", "pid", table.key.TGID, "reason", table.err)
		}
	}
	return err
}

// unseen returns the OCALL tables that the kernel side has seen since the last time.
func (f tables) unseen() ([]tableKey, error) {
	var key tableKey
	var zero uint64
	var found []tableKey
	entries := f.Object.Map("tables").Iterate()
	for entries.Next(&key, &zero) {
		if s := f.processes[key.TGID]; s != nil {
			if _, known := s.tables[key.Address]; known {
				continue
			}
		}
		found = append(found, key)
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("reading the OCALL tables: %w", err)
	}
	return found, nil
}

// locate finds the file that has the OCALL table at an address in a process.
func (f tables) locate(key tableKey, p *process.Process) (*file, uint64, error) {
	maps, err := f.Processes.Host.Mappings(key.TGID)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range maps {
		if key.Address < m.Start || key.Address >= m.End {
			continue
		}
		of, _, err := f.Files.Open(f.Processes.Host, key.TGID, m.Path, SDK)
		if err != nil {
			return nil, 0, err
		}
		address, ok := of.Program.Address(key.Address-m.Start+m.Offset, elf.PF_R)
		if !ok {
			return nil, 0, errors.New("the OCALL table is not in the file")
		}
		p.Files[of] = true
		file := f.of(of)
		if p.Watched && f.timer != nil {
			file.time()
		}
		return file, address, nil
	}
	return nil, 0, errors.New("the OCALL table is in no file")
}

// nameECalls tells a process the names of its ECALLs, if it has one table: which of several goes with a number is
// not counted. A program that executes itself has the same one at another address.
func (f tables) nameECalls(t located) {
	s := f.state(t.process)
	if t.err != nil {
		s.looked, s.named, s.ecalls = true, tableOf{}, nil
		return
	}
	table := tableOf{t.file.ID, t.address}
	if s.looked {
		if s.named != table {
			s.named, s.ecalls = tableOf{}, nil
		}
		return
	}
	names, err := ecallNames(t.file.Program, t.address)
	if err != nil {
		f.Log.Info("ECALLs have numbers instead of names", "file", t.file.Name, "reason", err)
	}
	s.looked, s.named, s.ecalls = true, table, names
}

// addTable adds the OCALLs of a table, once for each file and table.
func (f *file) addTable(address uint64) error {
	where := tableOf{f.ID, address}
	err, known := f.all.tables.attached[where]
	if !known {
		err = f.attachTable(address)
		f.all.tables.attached[where] = err
	}
	return err
}

func (f *file) attachTable(address uint64) error {
	bridges, err := ocallTable(f.Program, address)
	if err != nil {
		return err
	}
	names := map[uint64]string{}
	for i, a := range bridges {
		if _, twice := names[a]; a != 0 && !twice {
			names[a] = strconv.Itoa(i)
		}
	}
	if err := f.Program.Functions(func(fn executable.Function) {
		if _, ok := names[fn.Address]; ok && fn.Name != "" {
			names[fn.Address] = fn.Name
		}
	}); err != nil {
		return err
	}
	if len(f.Sites) == 0 {
		f.runtime, f.Runtime = sdk, SDK
	}
	before := len(f.Sites)
	var errs []error
	for a, name := range names {
		errs = append(errs, f.addSite(sdk, a, spot{ocall, rolePlain, name}))
	}
	return errors.Join(append(errs, f.attachMore(f.Sites[before:]))...)
}

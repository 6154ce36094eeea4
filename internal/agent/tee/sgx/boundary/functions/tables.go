// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// tableOf identifies an OCALL table of a file by its linked address.
type tableOf struct {
	file    hostfs.FileID
	address uint64
}

// located is an OCALL table of a process, and its position in the file.
type located struct {
	key     tableKey
	process *process.Process
	file    *file
	address uint64 // linked address
	err     error  // why the position is unknown
}

// maxTables is the limit of tables that are examined in one process.
const maxTables = 16

var errTables = errors.New("too many OCALL tables")

// ocallTables finds the OCALL tables of all processes. The OCALLs of the SDK are known only through them.
type ocallTables struct {
	functions *Functions
	attached  map[tableOf]error // nil if all OCALLs of the table are probed
}

// find looks for new OCALL tables.
func (o ocallTables) find() error {
	found, err := o.unseen()
	if err != nil || len(found) == 0 {
		return err
	}
	var all []located
	for _, key := range found {
		p := o.functions.Processes.Get(key.TGID)
		if p == nil {
			err = errors.Join(err, o.functions.remove("tables", key))
			continue
		}
		// An enclave has one table. A program with more than maxTables passes arbitrary addresses.
		table := located{key: key, process: p, err: errTables}
		if len(o.functions.state(p).tables) < maxTables {
			table.file, table.address, table.err = o.locate(key, p)
		}
		o.nameECalls(table)
		all = append(all, table)
	}
	err = errors.Join(err, o.functions.Read()) // the ECALLs before the OCALLs are probed
	for _, table := range all {
		if table.err == nil {
			table.err = table.file.addTable(table.address)
		}
		o.functions.state(table.process).tables[table.key.Address] = table.err
		if table.err != nil && !errors.Is(table.err, errTables) {
			o.functions.Log.Info("not all OCALLs are counted", "pid", table.key.TGID, "reason", table.err)
		}
	}
	return err
}

// unseen returns the OCALL tables that the kernel side has seen since the previous call.
func (o ocallTables) unseen() ([]tableKey, error) {
	var key tableKey
	var zero uint64
	var found []tableKey
	entries := o.functions.Object.Map("tables").Iterate()
	for entries.Next(&key, &zero) {
		if s := o.functions.processes[key.TGID]; s != nil {
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

// locate finds the file that contains the OCALL table at an address in a process.
func (o ocallTables) locate(key tableKey, p *process.Process) (*file, uint64, error) {
	maps, err := o.functions.Processes.Host.Mappings(key.TGID)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range maps {
		if key.Address < m.Start || key.Address >= m.End {
			continue
		}
		of, _, err := o.functions.Files.Open(o.functions.Processes.Host, key.TGID, m, SDK)
		if err != nil {
			return nil, 0, err
		}
		address, ok := of.Program.Address(key.Address-m.Start+m.Offset, elf.PF_R)
		if !ok {
			return nil, 0, errors.New("the OCALL table is not in the file")
		}
		p.Files[of] = true
		file := o.functions.of(of)
		if p.Timed() && o.functions.timer != nil {
			file.time()
		}
		return file, address, nil
	}
	return nil, 0, errors.New("the OCALL table is in no file")
}

// nameECalls sets the names of the ECALLs of a process with one table. With several tables it is unknown which
// one a number belongs to. A program that executes itself has the same table at another address.
func (o ocallTables) nameECalls(t located) {
	s := o.functions.state(t.process)
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
		o.functions.Log.Info("ECALLs have numbers instead of names", "file", t.file.Name, "reason", err)
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
	bridges, uncertain := ocallTable(f.Program, address)
	names := map[uint64]string{}
	for i, a := range bridges {
		if _, twice := names[a]; a != 0 && !twice {
			names[a] = strconv.Itoa(i)
		}
	}
	if len(names) == 0 {
		return uncertain
	}
	if err := f.Program.Functions(func(fn executable.Function) {
		if sdk.isWorker(fn) {
			f.worker = fn
		}
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
	errs := []error{uncertain}
	for a, name := range names {
		errs = append(errs, f.addSite(sdk, a, spot{ocall, rolePlain, name}))
	}
	return errors.Join(append(errs, f.attachMore(f.Sites[before:]))...)
}

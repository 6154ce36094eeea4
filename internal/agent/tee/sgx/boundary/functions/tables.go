// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
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

// examined is what is known of an OCALL table of a process.
type examined struct {
	err   error     // why not all its OCALLs are probed
	file  *file     // that contains it; nil if that is unknown
	again time.Time // when it is examined again; zero if it is not
	at    time.Time // when it was examined last
}

// complete reports whether all OCALLs of the table are probed.
func (e examined) complete() bool { return e.err == nil && !e.file.Waits() }

// maxTables is the limit of tables that are examined in one process.
const maxTables = 16

var errTables = errors.New("too many OCALL tables")

// ocallTables finds the OCALL tables of all processes. The OCALLs of the SDK are known only through them.
type ocallTables struct {
	functions *Functions
	attached  map[tableOf]error // nil if all OCALLs of the table are probed
}

// again is the time after which a table is examined again if the process did not answer.
const again = 2 * time.Second

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
		if p.Ended { // the table may be that of the program which the process runs now
			continue
		}
		// An enclave has one table. A program with more than maxTables passes arbitrary addresses.
		table := located{key: key, process: p, err: errTables}
		tables := o.functions.state(p).tables
		if _, known := tables[key.Address]; known || len(tables) < maxTables {
			table.file, table.address, table.err = o.locate(key, p)
		}
		if table.err == nil || !reader.Unanswered(table.err) {
			table.err = errors.Join(table.err, o.nameECalls(table))
		}
		all = append(all, table)
	}
	err = errors.Join(err, o.functions.Read()) // the ECALLs before the OCALLs are probed
	for _, table := range all {
		if table.err == nil {
			table.err = table.file.addTable(table.address)
		}
		o.remember(table)
	}
	return err
}

// remember notes what is known of a table. A process that did not answer once says nothing of its table.
func (o ocallTables) remember(t located) {
	is := examined{err: t.err, file: t.file, at: o.functions.Processes.Now()}
	unanswered := reader.Unanswered(t.err)
	if unanswered {
		is.again = o.functions.Processes.Now().Add(again)
	}
	known := o.functions.state(t.process).tables
	_, seen := known[t.key.Address]
	known[t.key.Address] = is
	if t.err != nil && !errors.Is(t.err, errTables) && (!unanswered || !seen) {
		o.functions.Log.Info("not all OCALLs are counted", "pid", t.key.TGID, "reason", t.err)
	}
}

// unseen returns the OCALL tables that the kernel side has seen since the previous call, and those that are due again.
func (o ocallTables) unseen() ([]tableKey, error) {
	var found []tableKey
	now := o.functions.Processes.Now()
	err := bpf.Each(o.functions.Object.Map("tables"), func(key tableKey, _ uint64) {
		if s := o.functions.processes[key.TGID]; s != nil {
			if is, known := s.tables[key.Address]; known && (is.again.IsZero() || now.Before(is.again)) {
				return
			}
		}
		found = append(found, key)
	})
	if err != nil {
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
// The error means that the process did not answer.
func (o ocallTables) nameECalls(t located) error {
	s := o.functions.state(t.process)
	if t.err != nil {
		s.looked, s.named, s.ecalls = true, tableOf{}, nil
		return nil
	}
	table := tableOf{t.file.ID, t.address}
	if s.looked {
		if s.named != table {
			s.named, s.ecalls = tableOf{}, nil
		}
		return nil
	}
	names, err := ecallNames(t.file.Program, t.address)
	if reader.Unanswered(err) {
		return err
	}
	if err != nil {
		o.functions.Log.Info("ECALLs have numbers instead of names", "file", t.file.Name, "reason", err)
	}
	s.looked, s.named, s.ecalls = true, table, names
	return nil
}

// addTable adds the OCALLs of a table, once for each file and table.
func (f *file) addTable(address uint64) error {
	where := tableOf{f.ID, address}
	err, known := f.all.tables.attached[where]
	if !known {
		if err = f.attachTable(address); !reader.Unanswered(err) {
			f.all.tables.attached[where] = err
		}
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
	err := f.attachMore(f.Sites[before:])
	if errors.Is(err, window.ErrUnsafe) {
		err = nil // the file waits, and the next step tries again
	}
	return errors.Join(append(errs, err)...)
}

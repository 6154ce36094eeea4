// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
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
	read    *tableRead
	err     error // why the position is unknown
}

// tableRead is what was read of an OCALL table while no lock was held.
type tableRead struct {
	*window.Opened
	address  uint64            // linked address
	names    map[uint32]string // of ECALLs
	namesErr error
	// The OCALLs by the address of their bridges, if they were not known.
	bridges   map[uint64]string
	found     findings
	uncertain error // why others are left out
}

// examined is the result for an OCALL table of a process.
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
	known     *sync.Map         // the keys of attached, for reads without a lock
	noted     []uint64          // how often the kernel side has added a table
	seen      uint64            // the same when the tables were last read
	unsettled bool              // some of them must be read again
}

// again is the time after which a table is examined again if the process did not answer.
const again = 2 * time.Second

// find looks for new OCALL tables, if there may be any. Each that is not settled is read again by the next call.
func (o *ocallTables) find() (err error) {
	noted := atomic.LoadUint64(&o.noted[0]) // before the tables: those that are added meanwhile change it again
	if noted == o.seen && !o.unsettled {
		return nil
	}
	o.seen, o.unsettled = noted, false
	defer func() { o.unsettled = o.unsettled || err != nil }()
	found, err := o.unseen()
	if err != nil || len(found) == 0 {
		return err
	}
	var all []located
	for _, key := range found {
		p := o.functions.Processes.Get(key.TGID)
		if o.functions.Processes.Waits(key.TGID) {
			o.unsettled = true
			continue
		}
		if p == nil {
			err = errors.Join(err, o.functions.remove("tables", key))
			continue
		}
		if p.Ended { // the table may be that of the program which the process runs now
			o.unsettled = true
			continue
		}
		// An enclave has one table. A program with more than maxTables passes arbitrary addresses.
		table := located{key: key, process: p, err: errTables}
		tables := o.functions.state(p).tables
		if _, known := tables[key.Address]; known || len(tables) < maxTables {
			table.file, table.read, table.err = o.locate(key, p)
		}
		if host.IsLater(table.err) {
			o.unsettled = true
			continue
		}
		if table.err == nil || !reader.Unanswered(table.err) {
			o.nameECalls(table)
		}
		all = append(all, table)
	}
	if len(all) == 0 {
		return err
	}
	err = errors.Join(err, o.functions.Read()) // the ECALLs before the OCALLs are probed
	for _, table := range all {
		if table.err == nil {
			table.err = table.file.addTable(table.read)
		}
		o.remember(table)
	}
	return err
}

// remember stores the result for a table. If a process did not answer once, its table is not known.
func (o *ocallTables) remember(t located) {
	is := examined{err: t.err, file: t.file, at: o.functions.Processes.Now()}
	unanswered := reader.Unanswered(t.err)
	if unanswered {
		o.unsettled = true
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
func (o *ocallTables) unseen() ([]tableKey, error) {
	var found []tableKey
	now := o.functions.Processes.Now()
	err := bpf.Each(o.functions.Object.Map("tables"), func(key tableKey, _ uint64) {
		if s := o.functions.processes[key.TGID]; s != nil {
			if is, known := s.tables[key.Address]; known && (is.again.IsZero() || now.Before(is.again)) {
				o.unsettled = o.unsettled || !is.again.IsZero()
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
func (o *ocallTables) locate(key tableKey, p *process.Process) (*file, *tableRead, error) {
	from := o.functions.Processes.Host
	read, err := process.Later(o.functions.Processes, p, key, func() (*tableRead, error) { return readTable(from, key, o.known) })
	if err != nil {
		return nil, nil, err
	}
	of, _, err := o.functions.Files.Take(read.Opened, sdkName)
	if err != nil {
		return nil, nil, err
	}
	p.Files[of] = true
	file := o.functions.of(of)
	if p.Timed() && o.functions.timer != nil {
		file.time()
	}
	return file, read, nil
}

// readTable reads the OCALL table at an address in a process. It uses nothing that a lock protects.
func readTable(from host.Processes, key tableKey, known *sync.Map) (*tableRead, error) {
	maps, err := from.Mappings(key.TGID)
	if err != nil {
		return nil, err
	}
	for _, m := range maps {
		if key.Address < m.Start || key.Address >= m.End {
			continue
		}
		of, err := window.Open(from, key.TGID, m)
		if err != nil {
			return nil, err
		}
		t := &tableRead{Opened: of}
		if err := t.read(key.Address-m.Start+m.Offset, known); err != nil {
			return nil, errors.Join(err, of.Close())
		}
		return t, nil
	}
	return nil, errors.New("the OCALL table is in no file")
}

// read reads the table at a position in the file.
func (t *tableRead) read(offset uint64, known *sync.Map) error {
	ok := false
	if t.address, ok = t.Program.Address(offset, elf.PF_R); !ok {
		return errors.New("the OCALL table is not in the file")
	}
	if t.names, t.namesErr = ecallNames(t.Program, t.address); reader.Unanswered(t.namesErr) {
		return t.namesErr
	}
	if _, attached := known.Load(tableOf{t.ID, t.address}); attached {
		return nil
	}
	return t.readOCalls()
}

// readOCalls finds the OCALLs of the table, with their names, and where they are probed.
func (t *tableRead) readOCalls() error {
	var bridges []uint64
	if bridges, t.uncertain = ocallTable(t.Program, t.address); reader.Unanswered(t.uncertain) {
		return t.uncertain
	}
	t.bridges, t.found = map[uint64]string{}, findings{points: map[uint64]point{}}
	for i, a := range bridges {
		if _, twice := t.bridges[a]; a != 0 && !twice {
			t.bridges[a] = strconv.Itoa(i)
		}
	}
	if len(t.bridges) == 0 {
		return nil
	}
	err := t.Program.Functions(func(fn executable.Function) {
		if sdk.isWorker(fn) {
			t.found.worker = fn
		}
		if _, ok := t.bridges[fn.Address]; ok && fn.Name != "" {
			t.bridges[fn.Address] = fn.Name
		}
	})
	for address := range t.bridges {
		err = errors.Join(err, t.found.locate(t.Program, address))
	}
	return err
}

// nameECalls sets the names of the ECALLs of a process with one table. With several tables it is unknown which
// one a number belongs to. A program that executes itself has the same table at another address.
func (o *ocallTables) nameECalls(t located) {
	s := o.functions.state(t.process)
	if t.err != nil {
		s.looked, s.named, s.ecalls = true, tableOf{}, nil
		return
	}
	table := tableOf{t.file.ID, t.read.address}
	if s.looked {
		if s.named != table {
			s.named, s.ecalls = tableOf{}, nil
		}
		return
	}
	if t.read.namesErr != nil {
		o.functions.Log.Info("ECALLs have numbers instead of names", "file", t.file.Name, "reason", t.read.namesErr)
	}
	s.looked, s.named, s.ecalls = true, table, t.read.names
}

// addTable adds the OCALLs of a table, once for each file and table.
func (f *file) addTable(t *tableRead) error {
	where := tableOf{f.ID, t.address}
	err, known := f.all.tables.attached[where]
	switch {
	case known:
	case t.bridges == nil:
		return errForgotten
	default:
		if err = f.attachTable(t); !reader.Unanswered(err) {
			f.all.tables.attached[where] = err
			f.all.tables.known.Store(where, true)
		}
	}
	return err
}

// errForgotten means that the OCALLs of a table were known when it was read, and no longer are. The table is read again.
var errForgotten = fmt.Errorf("its file was not probed meanwhile: %w", reader.ErrStuck)

func (f *file) attachTable(t *tableRead) error {
	if len(t.bridges) == 0 {
		return t.uncertain
	}
	f.worker = t.found.worker
	if len(f.Sites) == 0 {
		f.runtime, f.Runtime = sdk, sdkName
	}
	before := len(f.Sites)
	errs := []error{t.uncertain}
	for a, name := range t.bridges {
		errs = append(errs, f.addSite(sdk, t.found.points[a], spot{ocall, rolePlain, name}))
	}
	err := f.attachMore(f.Sites[before:])
	if errors.Is(err, host.ErrUnsafe) {
		err = nil // the file waits, and the next step tries again
	}
	return errors.Join(append(errs, err)...)
}

// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

// journalSuffix is added to the name of the state file.
const journalSuffix = ".journal"

// minJournal is the size in bytes up to which the journal is continued. A longer one is continued up to the size of the
// state. So all writes together are at most a few times what has changed.
const minJournal = 256 << 10

// journal contains the changes since the state file was written, one on a line. Writing the whole state for each delivery
// would take gigabytes for 2,000 alerts.
type journal struct {
	generation uint64
	file       *os.File // nil before the first writing and after a failure
	size, most int
}

// change is a line of the journal. The first line has only the generation.
type change struct {
	Generation uint64               `json:"generation,omitempty"`
	Open       *episode             `json:"open,omitempty"`
	End        *episode             `json:"end,omitempty"`
	Queue      map[string]*delivery `json:"queue,omitempty"` // by webhook
	Done       string               `json:"done,omitempty"`  // the id of a delivery
	To         string               `json:"to,omitempty"`    // its webhook
}

// replay applies a journal to a state, if it belongs to it. A line that a kill has cut off is the last one.
func replay(s *state, name string) {
	data, err := inputfile.ReadOwn(name, maxState)
	if err != nil {
		return
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		var c change
		if json.Unmarshal(line, &c) != nil || i == 0 && c.Generation != s.Generation || c.bad() {
			return
		}
		s.apply(c)
	}
}

// bad reports whether a change is incomplete.
func (c change) bad() bool {
	check := state{Queues: map[string][]*delivery{}}
	for _, e := range []*episode{c.Open, c.End} {
		if e != nil {
			check.Open = append(check.Open, e)
		}
	}
	for to, d := range c.Queue {
		check.Queues[to] = []*delivery{d}
	}
	return check.validate() != nil
}

func (s *state) apply(c change) {
	if c.Open != nil {
		s.Open = append(s.Open, c.Open)
	}
	if c.End != nil {
		s.Open = slices.DeleteFunc(s.Open, func(e *episode) bool { return e.Key == c.End.Key })
		s.Ended = append(s.Ended, c.End)
	}
	if s.Queues == nil {
		s.Queues = map[string][]*delivery{}
	}
	for to, d := range c.Queue {
		s.Queues[to], _ = bounded(append(s.Queues[to], d))
	}
	if c.Done != "" {
		s.Queues[c.To] = slices.DeleteFunc(s.Queues[c.To], func(d *delivery) bool { return d.ID == c.Done })
		if len(s.Queues[c.To]) == 0 {
			delete(s.Queues, c.To)
		}
	}
}

// append writes changes to the journal, or the whole state if the journal is long. If that fails, alerts are still sent,
// and the failure is logged once: a restart would send some alerts twice. Without sync, a crash of the machine, not of
// the process, may lose the changes.
func (h *Hub) append(sync bool, changes ...change) {
	err := h.disk.add(sync, changes)
	if err != nil {
		err = h.write()
	}
	if err != nil && h.saved {
		h.opts.Log.Error("state of sent alerts cannot be saved: after a restart some alerts are sent again; free disk space",
			"file", h.opts.File, "reason", err)
	}
	h.saved = err == nil
}

// errLong is returned when the state must be written as a whole.
var errLong = errors.New("the journal is long")

func (j *journal) add(sync bool, changes []change) error {
	if j.file == nil {
		return errLong
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, c := range changes {
		if err := encoder.Encode(c); err != nil {
			return err
		}
	}
	if j.size+text.Len() > j.most {
		return errLong
	}
	n, err := j.file.Write(text.Bytes())
	j.size += n
	if err == nil && sync {
		err = j.file.Sync()
	}
	if err != nil {
		j.close()
	}
	return err
}

func (j *journal) close() {
	if j.file != nil {
		_ = j.file.Close() // it is replaced by a new one
		j.file = nil
	}
}

// write replaces the state file atomically and begins a new journal.
func (h *Hub) write() error {
	h.disk.close()
	h.disk.generation++
	data, err := json.Marshal(state{
		Version: stateVersion, Generation: h.disk.generation, Open: h.sorted(), Ended: h.ended, Queues: h.queues,
	})
	if err != nil {
		return err
	}
	// No other process writes here, because the database has locked the directory.
	if err := atomicfile.Write(h.opts.File, data, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(h.opts.File+journalSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "{\"generation\":%d}\n", h.disk.generation); err != nil {
		return errors.Join(err, f.Close())
	}
	h.disk.file, h.disk.size, h.disk.most = f, 0, max(minJournal, len(data))
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

// The file has one JSON text on a line, after its CRC-32C in eight hexadecimal digits and a blank. The first line is a
// [header]. Each other one is an entry, and replaces earlier lines with the same number. Changes are appended and flushed
// to the disk. The file is written again as a whole when it has become twice as long as its entries, and at the start if
// a kill has cut off its last line.
const (
	fileVersion = 1
	minRewrite  = 256 << 10
	maxFile     = 2*maxBytes + 1<<20 // bytes, with lines that newer ones replace
	maxProblems = 3                  // lines that an error names
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	Version int `json:"version"`
	lost
}

// journal is the state of the file.
type journal struct {
	size  int64 // of the file; 0: it must be written as a whole
	lines int64 // bytes of the newest line of each entry
}

// damage lists lines that cannot be read.
type damage struct {
	name  string
	first []string
	lines int
	torn  bool // the last line is incomplete: a kill came while it was written
}

func (d *damage) add(line int, err error) {
	if d.lines++; len(d.first) < maxProblems {
		d.first = append(d.first, fmt.Sprintf("%s:%d: %v", d.name, line, err))
	}
}

// read reads the file. It sets a damaged file aside and writes what could be read.
func (s *Store) read() error {
	data, err := inputfile.ReadOwn(s.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d := damage{name: s.path}
	if err == nil {
		s.content, d, err = parse(s.path, data)
	}
	if err != nil {
		s.content = content{}
		aside := atomicfile.SetAside(s.path)
		return fmt.Errorf("the history of findings cannot be read and begins again; the file is %s: %w", aside, err)
	}
	if d.lines > 0 {
		s.log.Warn("lines of the history of findings cannot be read and are left out", "lines", d.lines, "first", d.first, "file", atomicfile.SetAside(s.path))
	}
	for _, e := range s.entries {
		s.file.lines += int64(e.size)
	}
	s.limit()
	if d.lines > 0 || d.torn {
		return s.write()
	}
	s.file.size = int64(len(data))
	return nil
}

// parse parses a file. Lines that are damaged are omitted. An error means that nothing can be used.
func parse(name string, data []byte) (c content, d damage, err error) {
	d.name = name
	by := make(map[uint64]Entry)
	for number := 1; len(data) > 0; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		data = rest
		if !whole {
			d.torn = true
			break
		}
		text, err := unwrap(line)
		if number == 1 {
			var h header
			if err == nil {
				err = json.Unmarshal(text, &h)
			}
			if err == nil && h.Version != fileVersion {
				err = fmt.Errorf("its version is %d instead of %d", h.Version, fileVersion)
			}
			if err != nil {
				return content{}, d, fmt.Errorf("%s:1: %w", name, err)
			}
			c.lost = h.lost
			continue
		}
		var e Entry
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err == nil {
			err = e.check()
		}
		if err != nil {
			d.add(number, err)
			continue
		}
		e.size = len(line) + 1
		if by[e.Number] = e; len(by) > 2*maxEntries {
			return content{}, d, fmt.Errorf("%s:%d: it has more than %d findings", name, number, 2*maxEntries)
		}
	}
	for _, e := range by {
		c.entries = append(c.entries, e)
		c.next = max(c.next, e.Number+1)
	}
	slices.SortFunc(c.entries, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	c.oneOpen(&d)
	return c, d, nil
}

// oneOpen ends all but the newest open entry of an ID. A file that was written completely has no other open entry of an
// ID.
func (c *content) oneOpen(d *damage) {
	open := make(map[string]bool)
	for i, e := range slices.Backward(c.entries) {
		if e.Open() && open[e.ID] {
			c.entries[i].Ended, c.entries[i].EndUnknown = e.Began, true
			d.torn = true // write it again
		}
		open[e.ID] = open[e.ID] || e.Open()
	}
}

// unwrap returns the text of a line whose sum is right.
func unwrap(line []byte) ([]byte, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("it has %d bytes; the maximum is %d", len(line), maxLine)
	}
	sum, text, found := bytes.Cut(line, []byte(" "))
	want, err := strconv.ParseUint(string(sum), 16, 32)
	if !found || err != nil || len(sum) != 8 {
		return nil, errors.New("it does not begin with a checksum")
	}
	if uint32(want) != crc32.Checksum(text, castagnoli) {
		return nil, errors.New("the checksum is wrong")
	}
	return text, nil
}

// wrap returns the line of a value.
func wrap(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(body, castagnoli), body), nil
}

// line returns the line of an entry, without queries if they do not fit, and without what was searched for if it cannot be
// written.
func (e *Entry) line() ([]byte, error) {
	line, err := wrap(e)
	if err != nil {
		e.Preceded, e.Earlier, e.Outcome = nil, nil, nil
		line, err = wrap(e)
	}
	if err == nil && len(line) > maxLine {
		e.withoutQueries()
		line, err = wrap(e)
	}
	if err == nil && len(line) > maxLine {
		err = fmt.Errorf("it has %d bytes; the maximum is %d", len(line), maxLine)
	}
	if err != nil {
		return nil, fmt.Errorf("finding of rule %q: %w", e.Rule, err)
	}
	return line, nil
}

// check returns an error for an entry that no program writes.
func (e *Entry) check() error {
	switch {
	case e.ID == "" || e.Rule == "":
		return errors.New("the finding has no ID or no rule")
	case e.Number > 1<<53:
		return fmt.Errorf("the number %d is too large", e.Number)
	case e.Severity.LeastGain() < 0:
		return fmt.Errorf("there is no severity %.20q", string(e.Severity))
	case e.Began.IsZero(), !e.Ended.IsZero() && e.Ended.Before(e.Began), e.Ended.IsZero() && !e.Closed.IsZero():
		return errors.New("it has no beginning, or ends before it")
	case len(e.Evidence) > maxFigures, len(e.Preceded) > maxEvents, len(e.Earlier) > maxEarlier:
		return fmt.Errorf("it has more than %d figures, %d events or %d earlier figures", maxFigures, maxEvents, maxEarlier)
	}
	for _, s := range []*string{&e.ID, &e.Rule, &e.Title, &e.Workload, &e.Instance} {
		*s = short(*s) // names that are too long or have control characters are not shown
	}
	e.Silence = analysis.SilenceKind(short(string(e.Silence)))
	e.Confidence = analysis.Confidence(short(string(e.Confidence)))
	for i := range e.Evidence {
		one := &e.Evidence[i]
		one.Name, one.Unit, one.Query = short(one.Name), short(one.Unit), query(one.Query)
	}
	if e.Evidence == nil {
		e.Evidence = []Figure{}
	}
	e.bound()
	return nil
}

// save writes the entries of these numbers. It is called with the lock.
func (s *Store) save(changed []uint64) error {
	if len(changed) == 0 && (s.file.size > 0 || len(s.entries) == 0) {
		return nil
	}
	var out []byte
	var refused error
	for _, number := range changed {
		i := s.at(number)
		if i < 0 {
			continue
		}
		line, err := s.entries[i].line()
		if err != nil { // a time or a figure that JSON does not have
			refused = errors.Join(refused, fmt.Errorf("leaving a finding out of the history: %w", err))
			s.file.lines -= int64(s.entries[i].size)
			s.entries = slices.Delete(s.entries, i, i+1)
			s.index()
			continue
		}
		s.file.lines += int64(len(line) - s.entries[i].size)
		s.entries[i].size = len(line)
		out = append(out, line...)
	}
	dropped := s.limit()
	if s.path == "" || len(out) == 0 && s.file.size > 0 {
		return refused
	}
	if most := max(2*s.file.lines, minRewrite); dropped || s.file.size == 0 || s.file.size+int64(len(out)) > most {
		return errors.Join(refused, s.write())
	}
	err := s.append(out)
	if err != nil {
		err = s.write() // the file may end with a part of a line
	}
	return errors.Join(refused, err)
}

// append appends lines. A file of another size was changed by something else.
func (s *Store) append(out []byte) error {
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != s.file.size {
		return errors.Join(err, errors.New("the file was changed"))
	}
	if _, err = f.Write(out); err == nil {
		err = f.Sync()
	}
	if err == nil {
		s.file.size += int64(len(out))
	}
	return err
}

// write replaces the file. A reader, also after kill -9, sees either the old or the new content.
func (s *Store) write() error {
	s.file.size = 0 // until it is written
	if s.path == "" {
		return nil
	}
	out, err := wrap(header{fileVersion, s.lost})
	for i := range s.entries {
		var line []byte
		if err == nil {
			line, err = s.entries[i].line()
		}
		out = append(out, line...)
	}
	if err == nil {
		err = atomicfile.Write(s.path, out, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the history of findings: %w; it remains in memory", err)
	}
	s.file.size = int64(len(out))
	return nil
}

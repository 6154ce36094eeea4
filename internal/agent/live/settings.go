// SPDX-License-Identifier: Apache-2.0

package live

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/lib/clock"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

const (
	// maxContinuous bounds a manifest that is read while an agent runs, in bytes. Signed ones have 100 to 200 bytes for each trusted
	// file. Parsing this many takes 50 ms.
	maxContinuous = 1 << 20
	// pace is the maximum number of bytes of manifests that are parsed per second: 1.2 % of a processor.
	pace = 256 << 10
	// burst is the maximum time without parsing that is credited, so that programs that started together are read together.
	burst = (maxContinuous / pace) * time.Second
	// maxParsed is the maximum number of programs whose parsed settings are kept.
	maxParsed = 1024
	// between is the tolerance for a manifest that was written after its program started: the start is known to 10 ms, and the
	// wall clock is adjusted.
	between = time.Second
)

var (
	errChanged = errors.New("it was written after the program started")
	// ErrPace means that the manifest was not read, and can be soon.
	ErrPace = errors.New("too many manifests are waiting: it is parsed later")
)

// Settings reads settings of programs from their manifests again and again. It is not safe for concurrent use.
type Settings struct {
	finder *Finder
	wanted []string
	now    func() time.Time
	parsed map[int]parsed // by process ID
	next   time.Time      // when the next manifest may be parsed; it may lie in the past by burst
}

// parsed is what was found in a manifest.
type parsed struct {
	sum   [sha256.Size]byte
	found map[string]string
}

// NewSettings returns a reader of these keys of manifests.
func NewSettings(m Machine, wanted []string) *Settings {
	return &Settings{finder: New(m, nil), wanted: wanted, now: time.Now, parsed: make(map[int]parsed)}
}

// Of returns the wanted keys that are set in the manifest of a process, as the manifest writes their values, without the quotes of
// strings. started is the time from the machine's start to that of the process. It returns nil for a process that is not the first one of a Gramine program. A manifest that was written after the process
// started is an error, because Gramine reads it only at the start.
func (s *Settings) Of(pid int, runtime teelabel.Runtime, started time.Duration) (map[string]string, error) {
	if runtime != teelabel.GramineSGX && runtime != teelabel.GramineDirect {
		return nil, nil
	}
	f := s.finder
	first, app := f.first(pid)
	if first != pid {
		return nil, nil
	}
	if _, known := s.parsed[pid]; !known && s.now().Before(s.next) { // parsing would be refused
		return nil, ErrPace
	}
	m, err := reader.Of(f.reads, pid, func() (manifestFile, error) { return manifestOf(f.proc.Process(pid), app, runtime, maxContinuous) })
	if err != nil {
		return nil, err
	}
	if began := s.now().Add(started - clock.SinceBoot()); m.written.After(began.Add(between)) {
		return nil, fmt.Errorf("%s: %w", m.name, errChanged)
	}
	sum := sha256.Sum256(m.text)
	if known, ok := s.parsed[pid]; ok && known.sum == sum {
		return known.found, nil
	}
	found, err := s.parse(m)
	if err != nil {
		return nil, err
	}
	if len(s.parsed) >= maxParsed {
		clear(s.parsed) // the IDs of ended processes are reused
	}
	s.parsed[pid] = parsed{sum, found}
	return found, nil
}

// parse returns the wanted settings of a manifest.
func (s *Settings) parse(file manifestFile) (map[string]string, error) {
	now := s.now()
	if now.Before(s.next) {
		return nil, fmt.Errorf("%s: %w", file.name, ErrPace)
	}
	if earliest := now.Add(-burst); s.next.Before(earliest) {
		s.next = earliest
	}
	s.next = s.next.Add(time.Duration(len(file.text)) * time.Second / pace)
	m, err := manifest.Parse(file.text, manifest.Options{Name: file.name})
	if err != nil {
		return nil, err
	}
	found := make(map[string]string)
	for _, key := range s.wanted {
		v := m.Get(key)
		if v.Set && v.Unknown == "" && v.Kind != manifest.Array && v.Kind != manifest.Table {
			found[key] = strings.Clone(v.Text) // a copy, so that the manifest can be freed
		}
	}
	return found, nil
}

// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
)

// book is the content of a ledger's file.
type book struct {
	Version int     `json:"version"`
	Open    []Entry `json:"open"`
	Closed  []Entry `json:"closed"`
	Ended   ended   `json:"ended,omitempty"` // older versions ignore it
}

const (
	bookVersion = 1
	maxBook     = 32 << 20 // bytes
)

// readBook reads a ledger's file. A missing file is empty. A file that cannot be parsed is renamed.
func readBook(path string, log *slog.Logger) (book, error) {
	text, err := inputfile.ReadOwn(path, maxBook)
	if errors.Is(err, fs.ErrNotExist) {
		return book{}, nil
	}
	if err != nil && !errors.Is(err, inputfile.ErrSize) {
		return book{}, fmt.Errorf("reading the findings: %w", err)
	}
	var b book
	if err == nil {
		b, err = parseBook(text)
	}
	if err != nil {
		aside := path + ".bad"
		if e := os.Rename(path, aside); e != nil {
			return book{}, fmt.Errorf("renaming the unreadable file of findings (%w): %w", err, e)
		}
		log.Warn("the file of findings cannot be read and has been renamed: all findings that are still open are reported again",
			"file", aside, "error", err)
	}
	return b, nil
}

// parseBook parses a ledger's file. Any invalid entry is an error, because then others may be wrong too.
func parseBook(text []byte) (book, error) {
	var b book
	in := json.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&b); err != nil {
		return book{}, err
	}
	if b.Version != bookVersion {
		return book{}, fmt.Errorf("its version is %d instead of %d", b.Version, bookVersion)
	}
	if len(b.Open) > maxOpen || len(b.Closed) > maxClosed {
		return book{}, fmt.Errorf("it has %d open findings and %d closed ones; at most %d and %d are allowed", len(b.Open), len(b.Closed), maxOpen, maxClosed)
	}
	if len(b.Ended) > maxEnded {
		return book{}, fmt.Errorf("it remembers %d ended findings; at most %d are allowed", len(b.Ended), maxEnded)
	}
	seen := make(map[string]bool)
	for _, e := range b.Open {
		if seen[e.ID] || !e.Closed.IsZero() {
			return book{}, fmt.Errorf("open finding %q is duplicate or closed", e.ID)
		}
		seen[e.ID] = true
	}
	for _, e := range slices.Concat(b.Open, b.Closed) {
		if e.ID != analysis.ID(e.Rule, e.Workload, e.Instance) || e.Severity.LeastGain() < 0 {
			return book{}, fmt.Errorf("finding %q of rule %q has a wrong ID or an unknown severity", e.ID, e.Rule)
		}
	}
	return b, nil
}

// write replaces the file atomically. A reader, also after kill -9, sees either the old or the new content.
func (l *Ledger) write() error {
	if l.path == "" {
		return nil
	}
	text, err := json.Marshal(book{Version: bookVersion, Open: l.open, Closed: l.closed, Ended: l.ended})
	if err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	if err := atomicfile.Write(l.path, text, 0o600); err != nil {
		return fmt.Errorf("writing the findings: %w; they remain in memory", err)
	}
	return nil
}

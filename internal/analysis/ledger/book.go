// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
)

// book is a ledger's file.
type book struct {
	Version int     `json:"version"`
	Open    []Entry `json:"open"`
	Closed  []Entry `json:"closed"`
}

const (
	bookVersion = 1
	maxBook     = 32 << 20 // bytes
)

// readBook reads a ledger's file. One that is not there is empty. One that cannot be understood is renamed.
func readBook(path string, log *slog.Logger) (book, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return book{}, nil
	}
	if err != nil {
		return book{}, fmt.Errorf("reading the findings: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBook+1))
	if err != nil {
		return book{}, fmt.Errorf("reading the findings in %s: %w", path, err)
	}
	b, err := parseBook(text)
	if err != nil {
		aside := path + ".bad"
		if e := os.Rename(path, aside); e != nil {
			return book{}, fmt.Errorf("setting aside the findings, which cannot be read (%w): %w", err, e)
		}
		log.Warn("the file of findings cannot be read and has been set aside: findings begin anew, and those that last are told of again",
			"file", aside, "error", err)
	}
	return b, nil
}

// parseBook understands a ledger's file. Entries that cannot be are an error: who changed one may have changed others.
func parseBook(text []byte) (book, error) {
	if len(text) > maxBook {
		return book{}, fmt.Errorf("it has more than %d MiB", maxBook>>20)
	}
	var b book
	in := json.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(&b); err != nil {
		return book{}, err
	}
	if b.Version != bookVersion {
		return book{}, fmt.Errorf("its version is %d and not %d", b.Version, bookVersion)
	}
	if len(b.Open) > maxOpen || len(b.Closed) > maxClosed {
		return book{}, fmt.Errorf("it has %d open findings and %d closed ones; there may be %d and %d", len(b.Open), len(b.Closed), maxOpen, maxClosed)
	}
	seen := make(map[string]bool)
	for _, e := range b.Open {
		if seen[e.ID] || !e.Closed.IsZero() {
			return book{}, fmt.Errorf("finding %q is there twice, or closed among the open ones", e.ID)
		}
		seen[e.ID] = true
	}
	for _, e := range slices.Concat(b.Open, b.Closed) {
		if e.ID != analysis.ID(e.Rule, e.Workload, e.Instance) || e.Severity.LeastGain() < 0 {
			return book{}, fmt.Errorf("finding %q of rule %q has not that ID, or no known severity", e.ID, e.Rule)
		}
	}
	return b, nil
}

// write replaces the file at once: whoever reads it, also after kill -9, sees it as it was before or as it is now.
func (l *Ledger) write() error {
	if l.path == "" {
		return nil
	}
	text, err := json.Marshal(book{Version: bookVersion, Open: l.open, Closed: l.closed})
	if err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	if err := replace(l.path, text); err != nil {
		return fmt.Errorf("writing the findings: %w; they are kept in memory until then", err)
	}
	return nil
}

// replace writes beside the file and renames. A process that was killed in between leaves what the next one overwrites.
func replace(path string, text []byte) error {
	beside := path + ".new"
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(beside, path)
}

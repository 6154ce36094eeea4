// SPDX-License-Identifier: Apache-2.0

// Package compare implements teescope compare and teescope history: it reads run files and writes comparisons as text,
// JSON, CSV, Markdown, HTML and in Go's benchmark format.
//
// internal/run/compare makes the comparisons. It does not define flags.
package compare

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/compare"
)

// Extension is the extension of run files.
const Extension = ".tsrun"

// Formats lists the formats of comparisons.
func Formats() []string { return []string{"text", "json", "csv", "markdown", "html", "benchfmt"} }

// Load reads run files. An argument is a file, a folder of run files, or NAME=FILE, which puts a file into a group. The
// names are those of the groups, and empty without one.
func Load(arguments, workloads []string) (records []*compare.Record, names []string, err error) {
	var files []string
	for _, a := range arguments {
		name, path := named(a)
		found, err := expand(path)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range found {
			files, names = append(files, f), append(names, name)
		}
		if len(files) > compare.MaxRecords {
			return nil, nil, fmt.Errorf("more than %d run files: name fewer", compare.MaxRecords)
		}
	}
	records, err = extract(files, workloads)
	return records, names, err
}

// extract reads a few files at once. Only what a comparison needs of them stays in memory.
func extract(files, workloads []string) ([]*compare.Record, error) {
	records, failed := make([]*compare.Record, len(files)), make([]error, len(files))
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(4, len(files), runtime.GOMAXPROCS(0)) {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				r, err := run.Open(files[i])
				if err != nil {
					failed[i] = text.Remedy(err, "name a file that teescope record wrote")
					continue
				}
				records[i] = compare.Extract(r, files[i], workloads)
			}
		})
	}
	readers.Wait()
	if i := slices.IndexFunc(failed, func(err error) bool { return err != nil }); i >= 0 {
		return nil, failed[i]
	}
	return records, nil
}

// Runs reads the run files among arguments as they are. It returns nil if the first argument is neither a run file nor a
// folder.
func Runs(arguments []string) ([]*run.Run, error) {
	if info, err := os.Stat(arguments[0]); filepath.Ext(arguments[0]) != Extension && (err != nil || !info.IsDir()) {
		return nil, nil
	}
	all := []*run.Run{}
	for _, a := range arguments {
		files, err := expand(a)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			r, err := run.Open(f)
			if err != nil {
				return nil, text.Remedy(err, "name a file that teescope record wrote")
			}
			r.Series, r.Times = nil, nil // a table of runs has none of them
			if all = append(all, r); len(all) > compare.MaxRecords {
				return nil, fmt.Errorf("more than %d run files: name fewer", compare.MaxRecords)
			}
		}
	}
	return all, nil
}

// named splits NAME=FILE, unless it is the name of a file.
func named(argument string) (name, path string) {
	name, path, found := strings.Cut(argument, "=")
	if _, err := os.Stat(argument); err == nil || !found || name == "" || strings.Contains(name, "/") {
		return "", argument
	}
	return name, path
}

// expand returns the run files of a folder, or the file itself.
func expand(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, nil // reading it says what is wrong
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading the folder of run files: %w", err)
	}
	var files []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == Extension {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("the folder %s has no run file (*%s)", text.Terminal(path), Extension)
	}
	slices.Sort(files)
	return files, nil
}

// Report is a comparison with its verdict.
type Report struct {
	Tables   []*compare.Table
	Failures []compare.Failure
	// Conditions are the bounds that were checked.
	Conditions []compare.Condition
}

// Make compares runs, and checks conditions. The error says which conditions cannot be judged; the report is then complete
// without them.
func Make(records []*compare.Record, names []string, by string, o compare.Options, conditions []compare.Condition) (*Report, error) {
	sets, err := compare.Split(records, names, by)
	if err != nil {
		return nil, err
	}
	r := &Report{Conditions: conditions}
	for _, s := range sets {
		if len(s.Groups) < 2 {
			continue // a point of a sweep that only one of the groups has
		}
		t, err := compare.Compare(s, o)
		if err != nil {
			return nil, err
		}
		r.Tables = append(r.Tables, t)
	}
	if len(r.Tables) == 0 {
		return nil, fmt.Errorf("no two runs differ only in the label %s: leave --by out, or record the missing runs", by)
	}
	if len(sets) > 1 {
		r.Tables[0].Notes = append(r.Tables[0].Notes, compare.NoteLoads(sets, o.Phase)...)
	}
	r.Failures, err = compare.Check(r.Tables, conditions)
	return r, err
}

// Write writes a report in a format.
func (r *Report) Write(w io.Writer, format string) error {
	var b strings.Builder
	var err error
	switch format {
	case "json":
		err = r.json(&b)
	case "csv":
		err = r.csv(&b)
	case "markdown":
		r.markdown(&b)
	case "html":
		r.html(&b)
	case "benchfmt":
		err = r.benchmarks(&b)
	default:
		err = r.text(&b)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}

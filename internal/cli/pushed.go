// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/server/runs"
)

const (
	// perRun bounds the transfer of a run file.
	perRun = time.Minute
	// maxRunList is the maximum size of an answer with the list of runs, in bytes.
	maxRunList = 16 << 20
)

// PushedRuns are the runs that a server keeps.
type PushedRuns struct {
	Server string
	Access remote.Access
}

// isRun matches the form of a run's ID, which becomes a part of an address.
var isRun = lazy.Regexp(`^[0-9a-f]{1,64}$`)

// Push sends run files to the server, and prints the ID of each. What failed does not stop the others.
func (p PushedRuns) Push(ctx context.Context, out io.Writer, files []string) error {
	var failed []error
	for _, file := range files {
		one, target, err := p.push(ctx, file)
		if err != nil {
			failed = append(failed, fmt.Errorf("pushing %s: %w", text.Terminal(file), err))
			continue
		}
		fmt.Fprintf(out, "%s  %s, %d bytes, is kept by %s\n", text.Terminal(one.ID), text.Terminal(one.Name), one.Size, target)
	}
	return errors.Join(failed...)
}

func (p PushedRuns) push(ctx context.Context, file string) (one runs.Summary, target string, err error) {
	data, err := inputfile.Read(file, runs.MaxFile)
	if err != nil {
		return one, "", err
	}
	answer, target, err := p.ask(ctx, http.MethodPost, "", url.Values{"name": {filepath.Base(file)}}, data, maxRunList)
	if err != nil {
		return one, target, err
	}
	return one, target, decoded(answer, target, &one)
}

// ask sends a request to the API of runs, or of one run.
func (p PushedRuns) ask(ctx context.Context, method, id string, q url.Values, body []byte, most int64) ([]byte, string, error) {
	if id != "" && !isRun().MatchString(id) {
		return nil, "", fmt.Errorf("%q is not the ID of a run: \"teescope run list\" lists them", id)
	}
	server, err := remote.New("--server", p.Server, p.Access, perRun)
	if err != nil {
		return nil, "", err
	}
	path := runs.Path[1:]
	if id != "" {
		path += "/" + id
	}
	answer, target, err := ask(ctx, server, method, path, q, body, runs.ContentType, most)
	if errors.Is(err, errNoSuchAPI) {
		err = fmt.Errorf("%s keeps no runs: name a \"teescope up\" or \"teescope server\" with a database of its own", target)
	}
	return answer, target, err
}

// List writes the runs that the server keeps, the one that was pushed last first.
func (p PushedRuns) List(ctx context.Context, out io.Writer, asJSON bool) error {
	answer, target, err := p.ask(ctx, http.MethodGet, "", nil, nil, maxRunList)
	if err != nil {
		return err
	}
	all := []runs.Summary{}
	if err := decoded(answer, target, &all); err != nil {
		return err
	}
	if asJSON {
		return jsonapi.Print(out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "No run is kept.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSTARTED\tHOST\tLABELS\tN\tOUTCOMES\tENDED\tBY")
	for _, one := range all {
		cells := []string{
			one.ID, one.Name, one.Started.Format(time.RFC3339), one.Host, labelsOf(one), strconv.Itoa(one.Repetitions), outcomesOf(one), one.Ended, cmp.Or(one.PushedBy, "-"),
		}
		for i := range cells {
			cells[i] = text.Terminal(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func labelsOf(one runs.Summary) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(one.Labels)) {
		parts = append(parts, name+"="+one.Labels[name])
	}
	return cmp.Or(strings.Join(parts, " "), "-")
}

// outcomesOf has the medians of the first outcomes.
func outcomesOf(one runs.Summary) string {
	var parts []string
	for _, o := range one.Outcomes[:min(2, len(one.Outcomes))] {
		parts = append(parts, o.Name+" "+analysis.Figure(o.Median)+" "+o.Unit)
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// Pull writes run files of the server as ID.tsrun into a directory, and prints their names. It replaces no file.
func (p PushedRuns) Pull(ctx context.Context, out io.Writer, dir string, ids []string) error {
	for _, id := range ids {
		data, _, err := p.ask(ctx, http.MethodGet, id, nil, nil, runs.MaxFile+1)
		if err != nil {
			return fmt.Errorf("run %s: %w", text.Terminal(id), err)
		}
		name := filepath.Join(dir, id+".tsrun")
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return fmt.Errorf("writing the run file: %w", err)
		}
		_, err = f.Write(data)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("writing the run file: %w", err)
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

// Delete removes runs from the server.
func (p PushedRuns) Delete(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if _, _, err := p.ask(ctx, http.MethodDelete, id, nil, nil, maxRunList); err != nil {
			return fmt.Errorf("run %s: %w", text.Terminal(id), err)
		}
	}
	return nil
}

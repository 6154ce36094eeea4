// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/teescope/teescope/internal/analysis/fleet"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

// Fleet queries the state of all machines from a server.
type Fleet struct {
	Server  string
	Access  remote.Access
	Node    string // lists its pods; empty: none
	Pod     string // what its move to the machine To would change; both or none
	To      string
	Window  string // of the lowest and highest working sets; empty: the server's
	Limit   int    // machines in the answer
	Rows    int    // rows of each other table
	Columns int    // machines beside each pod
}

// Show writes the fleet as text or JSON.
func (o Fleet) Show(ctx context.Context, out io.Writer, asJSON bool) error {
	q := url.Values{"limit": {strconv.Itoa(o.Limit)}, "rows": {strconv.Itoa(o.Rows)}, "columns": {strconv.Itoa(o.Columns)}}
	for name, value := range map[string]string{"node": o.Node, "pod": o.Pod, "to": o.To, "window": o.Window} {
		if value != "" {
			q.Set(name, value)
		}
	}
	answer, target, err := askAPI(ctx, o.Server, o.Access, http.MethodGet, "api/fleet", q, nil, maxFindings)
	if errors.Is(err, errNoSuchAPI) {
		return fmt.Errorf("%s has no view of a fleet: name a \"teescope up\" or \"teescope server\" of this version", target)
	}
	if err != nil {
		return err
	}
	var view fleet.View
	if err := json.Unmarshal(answer, &view); err != nil || view.Schema != fleet.Schema {
		return fmt.Errorf("the answer of %s is not a fleet in the format %d: use the version of the server", target, fleet.Schema)
	}
	if asJSON {
		return jsonapi.Print(out, view)
	}
	report := fleetReport{view: view}
	report.write()
	_, err = io.WriteString(out, report.String())
	return err
}

// fleetReport is a fleet as text.
type fleetReport struct {
	strings.Builder
	view fleet.View
}

// unknown stands for a missing value.
const unknown = "-"

func (r *fleetReport) write() {
	v := r.view
	if v.WhatIf != nil {
		r.whatIf(*v.WhatIf)
	}
	if len(v.Nodes) == 0 {
		r.title("No machine is known. The server has scraped no agent.")
	}
	r.groups()
	r.nodes()
	r.pods("Pods of this machine", v.Pods, v.LeftOut.Pods)
	r.pods("Enclaves that cost most", v.Hottest, 0)
	r.evictions("Who evicts whom", v.Evictions, v.LeftOut.Evictions)
	r.placement()
	if len(v.Causes) > 0 {
		r.title("Findings by cause, ordered by the CPU cores that can be saved")
		for _, c := range v.Causes {
			for _, line := range render.Wrap(c.Text(), 110) {
				fmt.Fprintln(r, "  "+line)
			}
		}
		r.more(v.LeftOut.Causes)
	}
	if len(v.Problems) > 0 {
		r.title("Not known")
		for _, p := range v.Problems {
			fmt.Fprintln(r, "  "+text.Terminal(strings.TrimSpace(p.Query+"  "+p.Error)))
		}
	}
}

func (r *fleetReport) title(s string) {
	if r.Len() > 0 {
		fmt.Fprintln(r)
	}
	fmt.Fprintln(r, s)
}

func (r *fleetReport) more(n int) {
	if n > 0 {
		fmt.Fprintf(r, "  %d more\n", n)
	}
}

// table writes a table. Cells are foreign text.
func (r *fleetReport) table(title string, head []string, rows [][]string, more int) {
	if len(rows) == 0 {
		return
	}
	r.title(title)
	w := tabwriter.NewWriter(r, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i := range row {
			row[i] = text.Terminal(text.Short(row[i], 80))
		}
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush() // a builder has no errors
	r.more(more)
}

func (r *fleetReport) groups() {
	var rows [][]string
	for _, g := range r.view.TEEs {
		rows = append(rows, []string{g.TEE, strconv.Itoa(g.Nodes), value(g.Size, "bytes"), value(g.Used, "bytes")})
	}
	r.table("Machines by TEE", []string{"TEE", "MACHINES", "EPC", "USED"}, rows, 0)
	rows = nil
	for _, v := range r.view.Release {
		rows = append(rows, []string{v.Version, strconv.Itoa(v.Nodes)})
	}
	r.table("Versions of agents and servers", []string{"VERSION", "NUMBER"}, rows, 0)
}

func (r *fleetReport) nodes() {
	var rows [][]string
	for _, n := range r.view.Nodes {
		tee := "not known"
		switch {
		case n.Silent:
			tee = "no answer"
		case n.TEEs != nil && len(n.TEEs) == 0:
			tee = "none"
		case n.TEEs != nil:
			tee = strings.Join(n.TEEs, " ")
		}
		pods := strconv.Itoa(n.Pods)
		if n.Unmeasured > 0 {
			pods += fmt.Sprintf(" (%d not measured)", n.Unmeasured)
		}
		version := n.Version
		if version == "" {
			version = unknown
		}
		rows = append(rows, []string{n.Name, tee, value(n.Size, "bytes"), value(n.Used, "bytes"), value(n.Requested, "bytes"), span(n.WorkingSet, "bytes"), span(n.Pressure, "ratio"), value(n.Evicted, "1/s"), pods, version})
	}
	r.table("Machines, the fullest first", []string{"MACHINE", "TEE", "EPC", "USED", "REQUESTED", "WORKING SETS", "PRESSURE", "EVICTED", "PODS", "VERSION"}, rows, r.view.LeftOut.Nodes)
}

func (r *fleetReport) pods(title string, pods []fleet.Pod, more int) {
	var rows [][]string
	for _, p := range pods {
		rows = append(rows, []string{p.Name, p.Node, value(p.Resident, "bytes"), span(p.WorkingSet, "bytes"), value(p.LoadedBack, "1/s"), value(p.Exits, "1/s"), value(p.Cores, "cores"), span(p.Cost, "cores")})
	}
	r.table(title, []string{"POD", "MACHINE", "RESIDENT", "WORKING SET", "LOADED BACK", "EXITS", "CPU", "CPU OF EXITS AND PAGING"}, rows, more)
}

func (r *fleetReport) evictions(title string, all []fleet.Eviction, more int) {
	var rows [][]string
	for _, e := range all {
		rows = append(rows, []string{e.Node, e.Workload, e.By, render.Value(e.Pages, "1/s")})
	}
	r.table(title, []string{"MACHINE", "LOSES PAGES", "TAKES THEM", "PAGES"}, rows, more)
}

func (r *fleetReport) placement() {
	p, rows := r.view.Placement, [][]string(nil)
	for _, f := range p.Fits {
		room := unknown
		if f.Room != "" {
			room = f.Room
		}
		rows = append(rows, []string{f.Pod, f.Node, span(&f.WorkingSet, "bytes"), strconv.Itoa(f.Nodes), strconv.Itoa(f.Unknown), room})
	}
	r.table("Where pods fit", []string{"POD", "MACHINE", "WORKING SET", "OTHER MACHINES WITH ROOM", "NOT KNOWN", "MOST ROOM"}, rows, r.view.LeftOut.Fits)
	r.matrix(p)
	rows = nil
	for _, m := range p.Moves {
		rows = append(rows, []string{m.Pod, m.From, m.To, render.Value(m.Bytes, "bytes")})
	}
	more := ""
	if p.Unjudged > 0 {
		more = fmt.Sprintf(" (not known of %d more)", p.Unjudged)
	}
	if p.Crowded == 0 && p.Unjudged > 0 {
		r.title("No machine is known to have working sets that exceed its EPC" + more)
	}
	if p.Crowded > 0 && len(p.Moves) == 0 {
		r.title(fmt.Sprintf("No move relieves one of %s working sets exceed their EPC", text.Plural(p.Crowded, "machine whose", "machines whose")) + more)
	}
	r.table(fmt.Sprintf("Moves that relieve %d of %d machines whose working sets exceed their EPC%s", p.Relieved, p.Crowded, more), []string{"POD", "FROM", "TO", "WORKING SET"}, rows, r.view.LeftOut.Moves)
}

// matrix writes whether each pod fits on each of some machines.
func (r *fleetReport) matrix(p fleet.Placement) {
	var rows [][]string
	for _, f := range p.Fits {
		row := []string{f.Pod}
		for _, c := range f.Cells {
			row = append(row, string(c.Fits)+" "+span(c.Pressure, "ratio"))
		}
		if len(row) == 1+len(p.Columns) {
			rows = append(rows, row)
		}
	}
	if len(p.Columns) > 0 {
		title := "Whether each pod fits on each machine, and the pressure there with it"
		if more := r.view.LeftOut.Columns; more > 0 {
			title += fmt.Sprintf(" (without %s)", text.Plural(more, "more machine", "more machines"))
		}
		r.table(title, append([]string{"POD"}, p.Columns...), rows, 0)
	}
}

func (r *fleetReport) whatIf(w fleet.WhatIf) {
	rows := [][]string{}
	for _, c := range []fleet.Change{w.From, w.To} {
		rows = append(rows, []string{c.Node, value(c.Available, "bytes"), span(c.Before, "ratio"), span(c.After, "ratio")})
	}
	r.table(fmt.Sprintf("If %s moved from %s to %s", text.Terminal(w.Pod), text.Terminal(w.From.Node), text.Terminal(w.To.Node)), []string{"MACHINE", "EPC FOR ENCLAVES", "PRESSURE BEFORE", "PRESSURE AFTER"}, rows, 0)
	fmt.Fprintln(r, "  Does it fit? "+text.Terminal(string(w.Fits)))
	for _, note := range w.Notes {
		fmt.Fprintln(r, "  - "+text.Terminal(note))
	}
	r.evictions("Evictions that may end with the move", w.Evictions, 0)
}

func value(v *float64, unit string) string {
	if v == nil {
		return unknown
	}
	return render.Value(*v, unit)
}

// span formats a range. Without an upper end it is at least its lower one.
func span(r *fleet.Range, unit string) string {
	switch {
	case r == nil:
		return unknown
	case r.High == nil:
		return "at least " + render.Value(r.Low, unit)
	}
	low, high := render.Value(r.Low, unit), render.Value(*r.High, unit)
	if low == high {
		return low
	}
	return low + " to " + high
}

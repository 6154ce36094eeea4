// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/atomicfile"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/run"
)

// Limits of a sweep.
const (
	maxSettings = 16
	maxValues   = 1000
	maxPoints   = 10_000 // combinations times repetitions
)

// tableFile is the table of a sweep in its directory, beside the run files and the plan.
const tableFile = "runs.csv"

// Setting is a setting of a sweep with its values.
type Setting = run.Setting

// ParseMatrix parses NAME=VALUE,... for each setting. Without any, it returns nil.
func ParseMatrix(all []string) ([]Setting, error) {
	var settings []Setting
	for _, text := range all {
		name, list, ok := strings.Cut(text, "=")
		s := Setting{Name: name, Values: strings.Split(list, ",")}
		switch {
		case !ok || name == "" || strings.ContainsAny(name, "{}/\" \t\n") || len(name) > 100:
			return nil, fmt.Errorf("--matrix %q: write NAME=VALUE,VALUE", text)
		case slices.Contains(s.Values, "") || len(s.Values) > maxValues:
			return nil, fmt.Errorf("--matrix %q: 1 to %d values, separated by commas, none empty", text, maxValues)
		case slices.ContainsFunc(settings, func(o Setting) bool { return o.Name == name }):
			return nil, fmt.Errorf("--matrix %s is given twice: give all its values at once", name)
		}
		for i, v := range s.Values {
			if slices.Contains(s.Values[:i], v) {
				return nil, fmt.Errorf("--matrix %s has the value %q twice: --repeat repeats all runs", name, v)
			}
		}
		settings = append(settings, s)
	}
	if len(settings) > maxSettings {
		return nil, fmt.Errorf("--matrix: at most %d settings", maxSettings)
	}
	return settings, nil
}

// Sweep records a command with each combination of settings.
type Sweep struct {
	Settings []Setting
	Budget   time.Duration // no run begins that would end later; 0 is no limit
	Seed     int64         // of the random order; 0 takes one from the clock
}

// plan is the plan of a sweep. It is kept in the directory, so that an interrupted one continues in the same order.
type plan struct {
	Command  []string          `json:"command"`
	Setup    string            `json:"setup,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Settings []Setting         `json:"settings"`
	Repeat   int               `json:"repeat"`
	Warmup   int               `json:"warmup"`
	Seed     int64             `json:"seed"`
}

// spot is one run of a sweep.
type spot struct {
	values     map[string]string // by setting
	repetition int
	file       string
}

// Run records the runs that are missing in the directory. It returns the first exit status of a command that is not 0.
func (s Sweep) Run(ctx context.Context, o Options) (status int, err error) {
	if err := o.check(); err != nil {
		return StatusFailed, err
	}
	if len(o.Command) == 0 {
		return StatusFailed, errors.New("--matrix needs a command after --")
	}
	p, err := s.plan(o)
	if err != nil {
		return StatusFailed, err
	}
	spots, err := p.spots(o.Output)
	if err != nil {
		return StatusFailed, err
	}
	t := &table{dir: o.Output, settings: p.Settings, rows: map[string]row{}}
	missing, err := t.resume(spots)
	if err != nil {
		return StatusFailed, err
	}
	show := newProgress(o.Err, "")
	if done := len(spots) - len(missing); done > 0 {
		show.line(fmt.Sprintf("%d of %d runs are in %s already", done, len(spots), o.Output))
	}
	if len(missing) == 0 {
		return 0, t.write()
	}
	stop := listen()
	defer stop.close()
	ctx = context.WithoutCancel(ctx)
	agent, err := o.Agent(ctx)
	if err != nil {
		return StatusFailed, err
	}
	status, err = s.all(ctx, o, p, t, spots, missing, agent, stop)
	return status, errors.Join(err, agent.Close())
}

// all records the missing runs.
func (s Sweep) all(ctx context.Context, o Options, p plan, t *table, spots, missing []spot, agent *Agent, stop *stops) (status int, err error) {
	began, failed := time.Now(), 0
	for n, at := range missing {
		if took := time.Since(began); n > 0 && s.Budget > 0 && took+took/time.Duration(n) > s.Budget {
			newProgress(o.Err, "").line(fmt.Sprintf("the time budget of %s is used: %d of %d runs are missing; the same command goes on", s.Budget, len(missing)-n, len(spots)))
			break
		}
		show := newProgress(o.Err, fmt.Sprintf("%d/%d %s: ", len(spots)-len(missing)+n+1, len(spots), filepath.Base(at.file)))
		one, err := p.options(o, at).one(ctx, agent, stop, show)
		if err != nil {
			return one, err
		}
		if stop.stopped() {
			newProgress(o.Err, "").line("the sweep was interrupted; the same command goes on")
			return one, nil
		}
		if one != 0 {
			if failed++; status == 0 {
				status = one
			}
			if !o.IgnoreFailure {
				return status, fmt.Errorf("the command of %s ended with status %d: --ignore-failure goes on with the others", at.file, one)
			}
		}
		if err := t.add(at); err != nil {
			return StatusFailed, err
		}
	}
	return status, nil
}

// plan makes the directory and returns its plan. A directory with another plan is refused.
func (s Sweep) plan(o Options) (plan, error) {
	p := plan{Command: o.Command, Setup: o.Setup, Labels: o.Labels, Settings: s.Settings, Repeat: o.Repeat, Warmup: o.Warmup, Seed: s.Seed}
	n := o.Repeat
	for _, setting := range s.Settings {
		if n *= len(setting.Values); n > maxPoints {
			return p, fmt.Errorf("the sweep has more than %d runs: leave out values or repetitions", maxPoints)
		}
		if mark := "{" + setting.Name + "}"; !strings.Contains(strings.Join(append(o.Command, o.Setup), "\x00"), mark) {
			return p, fmt.Errorf("--matrix %s: %s is neither in the command nor in --setup", setting.Name, mark)
		}
	}
	if err := os.MkdirAll(o.Output, 0o755); err != nil {
		return p, fmt.Errorf("creating the directory of the sweep: %w", err)
	}
	name := filepath.Join(o.Output, run.PlanFile)
	text, err := inputfile.Read(name, run.MaxPlan)
	if errors.Is(err, fs.ErrNotExist) {
		for p.Seed == 0 {
			p.Seed = time.Now().UnixNano()
		}
		if text, err = json.MarshalIndent(p, "", "  "); err != nil {
			return p, err
		}
		return p, atomicfile.Write(name, append(text, '\n'), 0o644)
	}
	var old plan
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil {
		return p, fmt.Errorf("reading the plan of the sweep %s: %w", name, err)
	}
	if p.Seed == 0 {
		p.Seed = old.Seed
	}
	if !p.equal(old) {
		return p, fmt.Errorf("%s has another sweep (%s): use the same command and settings to go on, or another directory", o.Output, name)
	}
	return p, nil
}

func (p plan) equal(q plan) bool {
	a, err1 := json.Marshal(p)
	b, err2 := json.Marshal(q)
	return err1 == nil && err2 == nil && bytes.Equal(a, b)
}

// spots lists all runs in their random order.
func (p plan) spots(dir string) ([]spot, error) {
	all := []spot{{values: map[string]string{}}}
	for _, s := range p.Settings {
		var more []spot
		for _, at := range all {
			for _, v := range s.Values {
				values := maps.Clone(at.values)
				values[s.Name] = v
				more = append(more, spot{values: values})
			}
		}
		all = more
	}
	var spots []spot
	names := map[string]bool{}
	for _, at := range all {
		for n := range p.Repeat {
			parts := make([]string, 0, len(p.Settings))
			for _, s := range p.Settings {
				parts = append(parts, safe(s.Name)+"="+safe(at.values[s.Name]))
			}
			name := safe(strings.Join(parts, ","))
			file := fmt.Sprintf("%s-%d.tsrun", name, n+1)
			if names[file] { // two values differ in characters that a name cannot have, or are too long
				file = fmt.Sprintf("%s-%d-%d.tsrun", name, len(names), n+1)
			}
			names[file] = true
			spots = append(spots, spot{at.values, n + 1, filepath.Join(dir, file)})
		}
	}
	order := rand.New(rand.NewPCG(uint64(p.Seed), 0))
	order.Shuffle(len(spots), func(i, j int) { spots[i], spots[j] = spots[j], spots[i] })
	return spots, nil
}

// options returns the options of one run.
func (p plan) options(o Options, at spot) *Options {
	var pairs []string
	for name, value := range at.values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	fill := strings.NewReplacer(pairs...)
	one := o
	one.Output, one.Repeat, one.Setup, one.OutcomeFile = at.file, 1, fill.Replace(o.Setup), fill.Replace(o.OutcomeFile)
	one.Command, one.Labels = nil, map[string]string{}
	for _, argument := range o.Command {
		one.Command = append(one.Command, fill.Replace(argument))
	}
	for name, value := range o.Labels {
		one.Labels[name] = fill.Replace(value)
	}
	maps.Copy(one.Labels, at.values)
	one.conditions = []run.Condition{
		{Name: "sweep_seed", Value: strconv.FormatInt(p.Seed, 10), Kind: "note"},
		{Name: "sweep_repetition", Value: strconv.Itoa(at.repetition), Kind: "note"},
	}
	return &one
}

// table is the table of a sweep, in the format that internal/analysis/runs reads.
type table struct {
	dir      string
	settings []Setting
	rows     map[string]row // by file
}

// row is a run: its outcomes, by name.
type row struct {
	at       spot
	outcomes map[string]float64
}

// resume reads the complete runs. It renames incomplete run files, and returns the spots without a complete run.
func (t *table) resume(spots []spot) (missing []spot, err error) {
	for _, at := range spots {
		if _, err := os.Lstat(at.file); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, at)
			continue
		}
		r, err := run.Open(at.file)
		if err == nil && r.Damaged == nil && r.End != nil && r.End.Reason == "done" {
			t.take(at, r)
			continue
		}
		if err := aside(at.file); err != nil {
			return nil, err
		}
		missing = append(missing, at)
	}
	return missing, nil
}

// aside renames an incomplete run file.
func aside(name string) error {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.incomplete-%d", name, n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(name, to); err != nil {
				return fmt.Errorf("keeping an incomplete run: %w", err)
			}
			return nil
		}
	}
}

func (t *table) take(at spot, r *run.Run) {
	one := row{at, map[string]float64{}}
	for _, o := range r.Outcomes {
		one.outcomes[o.Name] = o.Value
	}
	t.rows[at.file] = one
}

// add reads a run that was recorded and writes the table.
func (t *table) add(at spot) error {
	r, err := run.Open(at.file)
	if err != nil {
		return err
	}
	if r.End == nil || r.End.Reason != "done" {
		return nil
	}
	t.take(at, r)
	return t.write()
}

// write replaces the file of the table.
func (t *table) write() error {
	var header []string
	for _, s := range t.settings {
		header = append(header, "setting:"+s.Name)
	}
	outcomes := map[string]bool{}
	for _, r := range t.rows {
		for name := range r.outcomes {
			outcomes[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(outcomes))
	for _, name := range names {
		header = append(header, "outcome:"+name)
	}
	var text bytes.Buffer
	out := csv.NewWriter(&text)
	lines := [][]string{header}
	for _, file := range slices.Sorted(maps.Keys(t.rows)) {
		r := t.rows[file]
		var line []string
		for _, s := range t.settings {
			line = append(line, r.at.values[s.Name])
		}
		for _, name := range names {
			cell := ""
			if v, ok := r.outcomes[name]; ok {
				cell = strconv.FormatFloat(v, 'g', -1, 64)
			}
			line = append(line, cell)
		}
		lines = append(lines, line)
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("writing the table of the sweep: %w", err)
	}
	return atomicfile.Write(filepath.Join(t.dir, tableFile), text.Bytes(), 0o644)
}

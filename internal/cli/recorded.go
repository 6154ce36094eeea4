// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/server/prom"
)

const (
	runExtension  = ".tsrun"
	leastRecorded = 10 * time.Second // of a window or a report, as with a server
	mostRecorded  = 7 * 24 * time.Hour
	machineLabel  = "instance"
)

// IsRunFile reports whether a file is a run file by its name.
func IsRunFile(name string) bool { return filepath.Ext(name) == runExtension }

// recorded is the series of a run file in memory.
type recorded struct {
	*run.Run
	store *prom.Store
}

// readRun reads a run file for queries. Its series get the label of a machine, which an agent does not export.
func readRun(name string) (*recorded, error) {
	r, err := run.Open(name)
	if err != nil {
		return nil, text.Remedy(err, "name a file that teescope record wrote")
	}
	if len(r.Times) < 2 {
		return nil, fmt.Errorf("%s has %s, and judging its series takes at least 2: record a longer load. \"teescope run show %s\" shows its outcomes", name, text.Plural(len(r.Times), "sample", "samples"), name)
	}
	store := prom.NewStore()
	for _, s := range r.Series {
		labels := map[string]string{"__name__": s.Name, machineLabel: cmp.Or(r.Meta.Host, "host")}
		for k, v := range s.Labels {
			labels[k] = v
		}
		if err := store.AddSeries(labels, r.Times, s.Values); err != nil {
			return nil, fmt.Errorf("reading the series of %s: %w", name, err)
		}
	}
	return &recorded{r, store}, nil
}

// window returns the part of the run that is judged: the steady state of its last repetition, or the whole of it if it has
// none, or all samples if there are no phases. It is rounded up to seconds and has at least 10 of them.
func (r *recorded) window() (window time.Duration, end time.Time) {
	from, to := r.Times[0], r.Times[len(r.Times)-1]
	last, steady := 0, false
	for _, p := range r.Phases {
		isSteady := p.Name == run.Steady
		if isSteady || p.Name == run.Whole {
			if p.Repetition > last || p.Repetition == last && isSteady && !steady {
				last, steady, from, to = p.Repetition, isSteady, p.From, p.To
			}
		}
	}
	window = (to.Sub(from) + time.Second - 1).Truncate(time.Second)
	return min(max(window, leastRecorded), mostRecorded), to
}

// span returns the time of the whole recording in whole seconds, and of at least 10.
func (r *recorded) span() (from, to time.Time) {
	from, to = r.Times[0].Truncate(time.Second), r.Times[len(r.Times)-1].Add(time.Second-1).Truncate(time.Second)
	if to.Sub(from) < leastRecorded {
		from = to.Add(-leastRecorded)
	}
	if to.Sub(from) > mostRecorded {
		from = to.Add(-mostRecorded)
	}
	return from, to
}

// warnings returns what a reader of findings must know of the recording.
func (r *recorded) warnings() []string {
	const most = 10
	var all []string
	if r.Damaged != nil {
		all = append(all, "the run file is damaged: "+r.Damaged.Error())
	} else if r.End == nil {
		all = append(all, "the recording was cut off")
	}
	for i, n := range r.Notes {
		if i == most {
			return append(all, fmt.Sprintf("and %s, which \"teescope run show\" has", text.Plural(len(r.Notes)-i, "more note", "more notes")))
		}
		all = append(all, n)
	}
	return all
}

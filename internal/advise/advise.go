// SPDX-License-Identifier: Apache-2.0

// Package advise turns data about a program in Gramine into ranked advice: its manifest, its SGX stats, its log, the
// machine, and the findings of an analysis. It evaluates rules. It does not depend on a rule, and reads no file.
package advise

import (
	"cmp"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// Input is something that a rule can need.
type Input string

// The inputs, by the flags that give them.
const (
	Manifest Input = "--manifest"
	Stats    Input = "--stats"
	Elapsed  Input = "--elapsed" // or the time that perf stat printed into the file of --stats
	CPUTime  Input = "--stats with the output of perf stat around the program"
	Counters Input = "--stats with counters of perf stat around the program"
	Strace   Input = "--strace with the output of strace -c -f"
	Traffic  Input = "--strace with the output of strace -f -yy"
	Profile  Input = "--profile of CPU time"
	Calls    Input = "--profile of OCALLs (sgx.profile.mode = \"ocall_outer\")"
	Log      Input = "--log"
	Findings Input = "--run or --server with --workload"
	Scaling  Input = "--scaling"
	Config   Input = "--config"
	Running  Input = "--live"
	Futex    Input = "--run or --server with --workload, of an agent with --syscalls.time"
	Churn    Input = "--live, --run or --server with --workload, of an agent that counts threads and system calls"
	EPCSize  Input = "--machine with the size of the EPC"
	Memory   Input = "--machine with the size of the memory"
	CPUs     Input = "--machine with the number of CPUs"
	Nodes    Input = "--machine with the number of NUMA nodes"
	Version  Input = "--gramine with the version of Gramine"
	HasSGX2  Input = "--machine with the output of is-sgx-available"
)

// Facts are the inputs of the rules. A fact that is not known is nil or zero.
type Facts struct {
	Manifest    *manifest.Manifest
	Stats       *read.Stats
	StatsFile   string
	Elapsed     time.Duration // that the stats are of
	Calls       *read.Calls
	Traffic     *read.Traffic
	CallsFile   string // of either
	Log         *read.Log
	LogFile     string
	Profile     *read.Functions
	ProfileFile string
	Scaling     []read.Load
	ScalingFile string
	Config      *read.Config // of another runtime than Gramine
	ConfigFile  string
	Live        *Live // a running program
	Gramine     *manifest.Versions
	Machine     *machine.Machine
	Judged      bool // an analysis has judged the workload
	Findings    []analysis.Finding
	FindingsOf  string  // what was analysed
	Rates       *Rates  // of the workload that was analysed
	Bursts      *Bursts // of the same
	Locks       *Locks  // of the same
}

// Locks are the calls of futex of a workload, and the time in them, as an agent measured it (--syscalls.time). Threads that wait for
// work are among those in futex.
type Locks struct {
	Calls  float64 `json:"futex_calls_per_second"`
	Futex  float64 `json:"futex_threads"`   // threads in futex on average
	All    float64 `json:"syscall_threads"` // threads in any system call on average, more than 0
	Source string  `json:"source"`
}

// Bursts are starts of threads with the sockets that were made in the same seconds, as an agent counted them. The window is cut into
// steps.
type Bursts struct {
	Starts  float64 `json:"thread_starts_per_second"` // in the step that has most
	Sockets float64 `json:"sockets_per_second"`       // in the same step: calls of socket
	Binds   float64 `json:"binds_per_second"`         // in the same step: calls of bind
	Step    float64 `json:"step_seconds"`
	Steps   int     `json:"steps"`  // with counts
	Many    int     `json:"many"`   // of these, with so many starts as the rule thread-churn requires
	Joined  int     `json:"joined"` // of these, with the sockets of an encrypted pipe for each thread
	Source  string  `json:"source"`
}

// Rates are what an agent counted of a workload.
type Rates struct {
	Exits  float64  `json:"exits_per_second"`                   // EEXITs
	AEXs   *float64 `json:"aexs_per_second,omitempty"`          // asynchronous exits; nil is not known
	Starts *float64 `json:"thread_starts_per_second,omitempty"` // nil is not known
	Forks  *float64 `json:"forks_per_second,omitempty"`         // nil is not known
	CPU    float64  `json:"cpu_cores"`                          // 0 is not known
	Source string   `json:"source"`
}

// Has reports whether an input was given.
func (f *Facts) Has(in Input) bool {
	known := false
	switch in {
	case Manifest:
		known = f.Manifest != nil
	case Stats:
		known = f.Stats != nil && f.Stats.Processes+f.Stats.Loads > 0
	case Elapsed:
		known = f.Stats != nil && f.Time() > 0
	case Counters:
		known = f.Stats != nil && len(f.Stats.Counters) > 0
	case Profile:
		known = f.Profile != nil && !f.Profile.PerCall
	case Calls:
		known = f.Profile != nil && f.Profile.PerCall && f.Profile.Named
	case CPUTime:
		known = f.Busy() > 0
	case Strace:
		known = f.Calls != nil
	case Traffic:
		known = f.Traffic != nil
	case Version:
		known = f.Gramine != nil
	case Config:
		known = f.Config != nil
	case Running:
		known = f.Live != nil && len(f.Live.Processes) > 0
	case Futex:
		known = f.Locks != nil
	case Churn:
		known = f.Bursts != nil
	case Scaling:
		known = len(f.Scaling) > 0
	case Log:
		known = f.Log != nil
	case Findings:
		known = f.Judged
	case EPCSize:
		_, known = f.Machine.EPC()
	case Memory:
		_, known = f.Machine.Memory()
	case CPUs:
		_, known = f.Machine.CPUs()
	case Nodes:
		_, known = f.Machine.Nodes()
	case HasSGX2:
		_, known = f.Machine.Is(machine.SGX2)
	}
	return known
}

// Time returns the time that the stats are of, or 0.
func (f *Facts) Time() time.Duration {
	if f.Elapsed > 0 || f.Stats == nil {
		return f.Elapsed
	}
	return f.Stats.Elapsed
}

// Busy returns the CPU time that the program used, in cores, or 0. perf stat measures it.
func (f *Facts) Busy() float64 {
	if f.Stats == nil || f.Stats.CPU <= 0 || f.Stats.Elapsed <= 0 {
		return 0
	}
	return f.Stats.CPU.Seconds() / f.Stats.Elapsed.Seconds()
}

// Finding returns the finding of a rule of the analysis with the largest gain, or nil.
func (f *Facts) Finding(rule string) *analysis.Finding {
	for i := range f.Findings { // they are ranked
		if f.Findings[i].Rule == rule {
			return &f.Findings[i]
		}
	}
	return nil
}

// Seen is one figure or setting that advice is based on.
type Seen struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`           // as metric names spell it; "" is none
	Text   string  `json:"text,omitempty"` // instead of a number
	Source string  `json:"source"`         // FILE:LINE, or where else it was read
	Line   int     `json:"-"`              // of the manifest, or 0
	// Do and Severity are about this figure alone. They are set if each figure is a separate problem.
	Do       string            `json:"-"`
	Severity analysis.Severity `json:"-"`
}

// Advice is one thing to change.
type Advice struct {
	Rule       string              `json:"rule"`
	Title      string              `json:"title"`
	Severity   analysis.Severity   `json:"severity"`
	Confidence analysis.Confidence `json:"confidence"`
	Seen       []Seen              `json:"seen"`
	Why        string              `json:"why"`
	Do         []string            `json:"do"`
	Changes    []manifest.Change   `json:"-"`
	Diff       string              `json:"diff,omitempty"`    // of the manifest
	NoDiff     string              `json:"no_diff,omitempty"` // why there is none although lines should change
	Saving     *estimate.Saving    `json:"saving,omitempty"`
	Gain       *estimate.Gain      `json:"gain,omitempty"` // absent where nothing shows what limits the throughput
	Risk       string              `json:"risk,omitempty"`
	Insecure   bool                `json:"insecure"` // not for production
	Choice     bool                `json:"choice"`   // --apply leaves it out: a person must decide
	Assumed    []string            `json:"assumed,omitempty"`
	Each       bool                `json:"-"`                 // each thing seen is a problem of its own, with its Do and Severity
	Section    string              `json:"section"`           // of the guide
	Analyze    string              `json:"analyze,omitempty"` // the rule of teescope analyze about the same cause
	NotWhen    []string            `json:"not_when,omitempty"`
}

// Effect is one consequence of a change, as an interval.
type Effect struct {
	What string  `json:"what"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Unit string  `json:"unit"` // as metric names spell it
}

// Estimate is the estimated effect of a change of one setting.
type Estimate struct {
	Key         string   `json:"key"`
	Value       string   `json:"value"`
	Was         string   `json:"was"` // in the manifest, or the default
	Seen        []Seen   `json:"seen"`
	Effects     []Effect `json:"effects"`
	Assumptions []string `json:"assumptions"`
	Note        string   `json:"note,omitempty"` // why there are no effects
	Risk        string   `json:"risk,omitempty"`
	Sweep       string   `json:"sweep,omitempty"` // the command whose measurement decides
}

// A Rule judges the facts.
type Rule struct {
	ID        string
	Title     string
	Needs     [][]Input // it judges if all inputs of one of these lists are there
	Signal    string    // what it looks at
	Threshold string    // with its unit
	Source    string    // of the threshold
	Section   string    // of Gramine's guide or another document
	Analyze   string    // the rule of teescope analyze about the same cause
	Advice    string    // in a few words
	NotWhen   []string
	After     string // the rule of the root cause, whose advice comes first
	// Judge returns nil if there is nothing to advise. Rule, title, section and the like are filled in.
	Judge func(*Facts) *Advice
}

// Missing is a rule that could not judge.
type Missing struct {
	Rule  string  `json:"rule"`
	Needs []Input `json:"needs"` // that are not there: those of the list that lacks least
}

// Result is the advice with what could not be judged.
type Result struct {
	Advice  []Advice  `json:"advice"` // the most worthwhile first
	Missing []Missing `json:"missing"`
	Checked []string  `json:"checked"` // rules that judged
	// Other are rules of the analysis that have found something that no line of a manifest changes.
	Other []string `json:"other"`
}

// Evaluate applies each rule to the facts.
func Evaluate(f *Facts, rules []Rule) Result {
	r := Result{Advice: []Advice{}, Missing: []Missing{}, Checked: []string{}, Other: []string{}}
	after := make(map[string]string)
	used := make(map[string]bool)
	for _, rule := range rules {
		if lacks := rule.lacks(f); len(lacks) > 0 {
			r.Missing = append(r.Missing, Missing{rule.ID, lacks})
			continue
		}
		r.Checked = append(r.Checked, rule.ID)
		a := rule.Judge(f)
		if a == nil {
			continue
		}
		a.Rule, a.Title, a.Section, a.NotWhen = rule.ID, rule.Title, rule.Section, rule.NotWhen
		if a.Analyze == "" {
			a.Analyze = rule.Analyze
		}
		used[a.Analyze] = true
		after[a.Rule] = rule.After
		a.diff(f.Manifest, f.Gramine)
		r.Advice = append(r.Advice, *a)
	}
	for _, found := range f.Findings {
		if !used[found.Rule] && !slices.Contains(r.Other, found.Rule) {
			r.Other = append(r.Other, found.Rule)
		}
	}
	rank(r.Advice, after)
	return r
}

// lacks returns what the rule needs and is not there.
func (r *Rule) lacks(f *Facts) []Input {
	var least []Input
	for i, list := range r.Needs {
		var lacks []Input
		for _, in := range list {
			if !f.Has(in) {
				lacks = append(lacks, in)
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		if i == 0 || len(lacks) < len(least) {
			least = lacks
		}
	}
	return least
}

// diff makes the diff of the changes.
func (a *Advice) diff(m *manifest.Manifest, v *manifest.Versions) {
	if len(a.Changes) == 0 {
		return
	}
	if m == nil {
		a.NoDiff = "no manifest was given (--manifest)"
		for _, c := range a.Changes {
			a.Do = append(a.Do, "set "+c.Key+" = "+c.Value)
		}
		a.Changes = nil
		return
	}
	for _, c := range a.Changes {
		if why := manifest.TooOld(m, c, v); why != "" {
			a.NoDiff, a.Changes = why, nil
			return
		}
	}
	diff, err := m.Diff(a.Changes...)
	if err != nil {
		a.NoDiff, a.Changes = err.Error(), nil
		return
	}
	a.Diff = diff
}

// rank sorts advice: by severity, by the certain part of the gain, then by the CPU time saved. What is insecure comes after
// everything equally severe, and a workaround after the advice about its root cause.
func rank(all []Advice, after map[string]string) {
	slices.SortStableFunc(all, func(a, b Advice) int {
		return cmp.Or(
			cmp.Compare(b.Severity.LeastGain(), a.Severity.LeastGain()),
			cmp.Compare(number(a.Insecure), number(b.Insecure)),
			cmp.Compare(b.Gain.Sure()*b.Confidence.Weight(), a.Gain.Sure()*a.Confidence.Weight()),
			cmp.Compare(saved(b), saved(a)),
			cmp.Compare(a.Rule, b.Rule),
		)
	})
	for i := 0; i < len(all); i++ {
		cause := slices.IndexFunc(all, func(a Advice) bool { return a.Rule == after[all[i].Rule] })
		if cause > i {
			moved := all[i]
			copy(all[i:], all[i+1:cause+1])
			all[cause] = moved
			i--
		}
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func saved(a Advice) float64 {
	if a.Saving == nil {
		return 0
	}
	return a.Saving.Low
}

// Apply returns the manifest with the changes of all advice that a person need not decide on, and the rules whose changes
// it contains. Of two changes of one key the first counts.
func Apply(m *manifest.Manifest, all []Advice) (text []byte, applied []string, err error) {
	var changes []manifest.Change
	taken := make(map[string]bool)
	for _, a := range all {
		if a.Insecure || a.Choice || len(a.Changes) == 0 {
			continue
		}
		if slices.ContainsFunc(a.Changes, func(c manifest.Change) bool { return taken[c.Key] }) {
			continue
		}
		for _, c := range a.Changes {
			taken[c.Key] = true
		}
		changes = append(changes, a.Changes...)
		applied = append(applied, a.Rule)
	}
	if len(changes) == 0 {
		return nil, nil, nil
	}
	text, err = m.Edit(changes...)
	return text, applied, err
}

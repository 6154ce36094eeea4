// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/rules"
	"github.com/teescope/teescope/internal/server/prom"
)

// A scene is a machine with several programs. Its author states what each program does, and the causes, before the rules see it. From a
// few figures, all families that an agent emits follow, with noise: the CPU time of the machine is that of its programs.
type scene struct {
	About   string  `yaml:"about"`
	CPUs    int     `yaml:"cpus"`
	GHz     float64 `yaml:"ghz"`
	TEE     string  `yaml:"tee"` // of the machine: a guest of TDX or SEV
	EPC     float64 `yaml:"epc"` // MiB
	Nodes   int     `yaml:"nodes"`
	Steal   float64 `yaml:"steal"`   // cores
	Reclaim float64 `yaml:"reclaim"` // share of the time in which some task waits for memory
	DiskMS  float64 `yaml:"disk_ms"`
	Network struct {
		Sent   float64 `yaml:"sent"` // segments/s
		Resent float64 `yaml:"resent"`
		Drops  float64 `yaml:"drops"`
	} `yaml:"network"`
	Machines  []string           `yaml:"machines"` // the same on several; one unless given
	Interval  duration           `yaml:"interval"`
	Seed      uint64             `yaml:"seed"`
	Extra     map[string]float64 `yaml:"extra"` // further counters of the machine, each second
	Gauges    map[string]float64 `yaml:"gauges"`
	Workloads map[string]*actor  `yaml:"workloads"`
	// Without are the beginnings of names of metrics that this machine does not have.
	Without []string `yaml:"without"`
	// Find has causes: for each workload, rules of which one must be found above info. Allow has further rules that may be. Limits has
	// what may be said to limit a workload.
	Find   map[string][]string           `yaml:"find"`
	Allow  map[string][]string           `yaml:"allow"`
	Limits map[string][]engine.LimitKind `yaml:"limits"`
	// Must has causes with a least severity: for each workload, rules of which one must be found with it. Their names are separated by
	// "|". Find is the same for low.
	Must map[string]map[string]analysis.Severity `yaml:"must"`
	// Most has the highest severity that may be said of a workload.
	Most map[string]analysis.Severity `yaml:"most"`

	name string
}

// An actor is a program of a scene. Rates are for a second.
type actor struct {
	doing `yaml:",inline"`

	TEE     string `yaml:"tee"`
	Runtime string `yaml:"runtime"`
	Kind    string `yaml:"kind"`
	Source  string `yaml:"source"` // of crossings
	// Began is how many seconds before the end it began; before, it did not exist. Was is what it did until that many seconds before the end.
	Began   float64 `yaml:"began"`
	Changed float64 `yaml:"changed"`
	Was     *doing  `yaml:"was"`
	// Every and For make it do this for some seconds each so many, and nothing otherwise.
	Every float64 `yaml:"every"`
	For   float64 `yaml:"for"`
	SD    float64 `yaml:"sd"` // of its load, 0.1 unless given
}

// doing is what a program does.
type doing struct {
	Threads   float64            `yaml:"threads"`
	Processes float64            `yaml:"processes"`
	User      float64            `yaml:"user"`
	System    float64            `yaml:"system"`
	Busiest   float64            `yaml:"busiest"`
	Wait      float64            `yaml:"wait"`
	Waits     float64            `yaml:"waits"`
	Preempted float64            `yaml:"preempted"`
	Calls     map[string]float64 `yaml:"calls"`
	CallTime  map[string]float64 `yaml:"call_time"`
	Faults    map[string]float64 `yaml:"faults"`
	Major     float64            `yaml:"major"`
	Forks     float64            `yaml:"forks"`
	Execs     float64            `yaml:"execs"`
	Starts    float64            `yaml:"starts"` // of threads
	Misses    float64            `yaml:"misses"`
	Migrated  float64            `yaml:"migrated"`
	Pages     float64            `yaml:"pages"` // of files
	Bytes     float64            `yaml:"bytes"` // on the network
	Memory    float64            `yaml:"memory"`

	Exits    float64            `yaml:"exits"`
	AEX      float64            `yaml:"aex"`
	Causes   map[string]float64 `yaml:"causes"`
	Traps    float64            `yaml:"traps"`
	ECALLs   map[string]float64 `yaml:"ecalls"`
	OCALLs   map[string]float64 `yaml:"ocalls"`
	Within   map[string]float64 `yaml:"within"` // threads in an OCALL
	Loaded   float64            `yaml:"loaded"` // pages
	Stall    float64            `yaml:"stall"`
	Inside   float64            `yaml:"inside"` // MiB of enclave memory
	Set      float64            `yaml:"set"`    // MiB of the working set
	TCS      float64            `yaml:"tcs"`
	Added    float64            `yaml:"added"` // pages
	Births   float64            `yaml:"births"`
	Starting float64            `yaml:"starting"` // seconds of a start of an enclave

	Exceptions map[string]float64 `yaml:"exceptions"` // of a guest
	Bounced    float64            `yaml:"bounced"`    // bytes
	VM         map[string]float64 `yaml:"vm"`         // exits of a machine that it hosts
	Outside    map[string]float64 `yaml:"outside"`    // threads

	Container bool    `yaml:"container"`
	Quota     float64 `yaml:"quota"`     // cores
	Throttled float64 `yaml:"throttled"` // share of periods
	Stopped   float64 `yaml:"stopped"`   // cores
	Limit     float64 `yaml:"limit"`     // MiB
	Resident  float64 `yaml:"resident"`  // share of the limit: working set
	RSS       float64 `yaml:"rss"`       // share of the limit: memory of programs
	Kills     float64 `yaml:"kills"`     // each second
	IO        float64 `yaml:"io"`        // share of the time in which some task waits for disks
	IOFull    float64 `yaml:"io_full"`
	MemSome   float64 `yaml:"mem"`
	MemFull   float64 `yaml:"mem_full"`
}

const (
	sceneHistory = 20 * time.Minute
	sceneWindow  = 5 * time.Minute
)

func scenes(t *testing.T) (all []scene) {
	t.Helper()
	for name, text := range partsOf(t, "scenes/*.yaml") {
		s := scene{CPUs: 8, GHz: 2.8, TEE: "none", Nodes: 1, DiskMS: 0.4, Interval: duration(5 * time.Second), Machines: []string{host}, name: name}
		if err := decode(text, &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, s)
	}
	return all
}

// evaluate judges a scene.
func (s *scene) evaluate(t *testing.T) engine.Result {
	t.Helper()
	all, times := s.series()
	result, err := engine.Evaluate(t.Context(), s.store(t, all, times), rules.All(), engine.Options{Window: sceneWindow, At: times[len(times)-1], Limiter: rules.Limits()})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// store returns series as a source. A series may have fewer values than there are times.
func (s *scene) store(t *testing.T, all []*track, times []time.Time) *prom.Source {
	t.Helper()
	db := prom.NewStore()
	for _, one := range all {
		values := slices.Clone(one.values)
		for len(values) < len(times) {
			values = append(values, math.NaN())
		}
		if err := db.AddSeries(one.labels, times, values); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	source, err := db.Source()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// score compares what was said about a scene with what is true.
func (s *scene) score(result engine.Result, sum *recordedScore) {
	complain := func(format string, args ...any) {
		sum.complaints = append(sum.complaints, s.name+": "+fmt.Sprintf(format, args...))
	}
	sum.runs++
	wrong := sum.wrong
	found := make(map[string]bool)
	for _, f := range result.Findings {
		switch {
		case f.Severity == analysis.Info:
		case s.Most[f.Workload] != "" && !s.Most[f.Workload].AtLeast(f.Severity):
			sum.wrong++
			complain("%s at %q is %s, which is too much: %s (gain %s)", f.Rule, f.Workload, f.Severity, f.Cause, gain(f))
		case slices.Contains(s.Find[f.Workload], f.Rule), s.must(f):
			sum.right++
			found[f.Workload+f.Instance] = true
		case slices.Contains(s.Allow[f.Workload], f.Rule):
			sum.right++
		default:
			sum.wrong++
			complain("%s at %q, which is not there: %s (%s, gain %s)", f.Rule, f.Workload, f.Cause, f.Severity, gain(f))
		}
	}
	for _, workload := range slices.Sorted(maps.Keys(s.Find)) {
		for _, instance := range s.Machines {
			sum.wanted++
			if found[workload+instance] {
				sum.found++
			} else {
				complain("none of %q is found at %s", s.Find[workload], workload)
			}
		}
	}
	for _, workload := range slices.Sorted(maps.Keys(s.Must)) {
		for rules, least := range s.Must[workload] {
			sum.wanted++
			if slices.ContainsFunc(result.Findings, func(f analysis.Finding) bool {
				return f.Workload == workload && f.Severity.AtLeast(least) && slices.Contains(strings.Split(rules, "|"), f.Rule)
			}) {
				sum.found++
			} else {
				complain("%s at %s is not found with severity %s", rules, workload, least)
			}
		}
	}
	if sum.wrong == wrong {
		sum.clean++
	}
	for _, p := range result.Problems {
		if p.Kind == query.Failed || p.Kind == query.Broken {
			complain("%s: %s", p.Kind, p.Error)
		}
	}
	for _, l := range result.Limits {
		may, asked := s.Limits[l.Workload]
		switch {
		case !asked:
		case l.Limit == engine.LimitUnknown:
			sum.unknown++
			complain("the limit of %s is unknown: %s", l.Workload, l.Because)
		case slices.Contains(may, l.Limit):
			sum.stated++
		default:
			sum.stated++
			sum.misled++
			complain("%s is limited by %s because %s, and not by one of %q", l.Workload, l.Limit, l.Because, may)
		}
	}
}

// must reports whether the rule of a finding is one that must be found.
func (s *scene) must(f analysis.Finding) bool {
	for rules := range s.Must[f.Workload] {
		if slices.Contains(strings.Split(rules, "|"), f.Rule) {
			return true
		}
	}
	return false
}

// TestScenes judges all scenes.
func TestScenes(t *testing.T) {
	sum := recordedScore{falseByRule: make(map[string]int)}
	for _, s := range scenes(t) {
		s.score(s.evaluate(t), &sum)
	}
	t.Logf("scenes\n%s\n%s", sum, strings.Join(sum.complaints, "\n"))
	if sum.wrong > 0 || sum.found < sum.wanted || sum.misled > 0 {
		t.Errorf("%d false findings, %d of %d causes found, %d wrong limits", sum.wrong, sum.found, sum.wanted, sum.misled)
	}
}

// TestScenesAreEmitted: the series of scenes are those of a real agent.
func TestScenesAreEmitted(t *testing.T) {
	families := emitted(t)
	seen := make(map[string]bool)
	for _, s := range scenes(t) {
		all, _ := s.series()
		for _, one := range all {
			labels := maps.Clone(one.labels)
			name := labels["__name__"]
			delete(labels, "__name__")
			if why := impossible(name, labels, families); why != "" && !seen[name+why] {
				seen[name+why] = true
				t.Errorf("%s: %s%v: %s", s.name, name, labels, why)
			}
		}
	}
}

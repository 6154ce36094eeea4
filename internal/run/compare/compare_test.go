// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/run"
	"github.com/teescope/teescope/internal/run/condition"
	"github.com/teescope/teescope/internal/run/runtest"
)

// The simulations of runs make much garbage in a small heap. To collect it often took 40 % of the CPU time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// record makes a record of a described run.
func record(t testing.TB, file string, s runtest.Spec) *Record {
	t.Helper()
	r, err := runtest.Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return Extract(r, file, nil)
}

// compared compares runs as groups of their own, or by their labels.
func compared(t testing.TB, o Options, by string, records ...*Record) []*Table {
	t.Helper()
	sets, err := Split(records, make([]string, len(records)), by)
	if err != nil {
		t.Fatal(err)
	}
	var tables []*Table
	for _, s := range sets {
		table, err := Compare(s, o)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	return tables
}

func row(t testing.TB, table *Table, id string) Row {
	t.Helper()
	var names []string
	for _, r := range table.Rows {
		if r.Metric.ID() == id {
			return r
		}
		names = append(names, r.Metric.ID())
	}
	t.Fatalf("no row %s in %v", id, names)
	return Row{}
}

// factorOf returns a factor for a repetition. Their median over 11 is 1.
func factorOf(i int) float64 { return 1 + float64(i-5)/1000 }

const repetitions = 11

// scone is a run of Redis with SCONE (TEEMon, Middleware 2020, 6.4).
func scone(throughput, clock float64) (s runtest.Spec) {
	for i := range repetitions {
		s.Repetitions = append(s.Repetitions, runtest.Repetition{
			Outcomes: []run.Outcome{runtest.Throughput(throughput * factorOf(i))},
			Counters: []runtest.Value{
				runtest.Counter(10*clock, "teescope_syscalls_total", "syscall", "clock_gettime"),
				runtest.Counter(10*37_000, "teescope_syscalls_total", "syscall", "read"),
				runtest.Counter(10*factorOf(i), "teescope_cpu_seconds_total", "mode", "user"),
			},
		})
	}
	return s
}

// SCONE's commits 572bd1a5 and 09fea91: 267952.22 and 621504 operations a second, over 370,000 calls of clock_gettime a second and at most
// 100. By hand: 621504/267952.22 = 2.31946, 370000/267952.22 = 1.38084 calls per operation, and 100/621504 = 0.000160900.
func TestCommitsOfSCONE(t *testing.T) {
	before, after := record(t, "572bd1a5", scone(267952.22, 370_000)), record(t, "09fea91", scone(621504, 100))
	table := compared(t, Options{PerOp: 1}, "", before, after)[0]
	throughput := row(t, table, "throughput").Cells[1].Change
	if math.Abs(throughput.Ratio.Value-2.31946) > 1e-5 || throughput.Verdict != Better || Percent(throughput.Ratio.Value) != "+131.9%" {
		t.Errorf("throughput %+v", throughput)
	}
	if c := row(t, table, "syscalls_per_op{clock_gettime}").Cells; math.Abs(c[0].Median.Value-1.38084) > 1e-5 || math.Abs(c[1].Median.Value-0.000160900) > 1e-9 ||
		c[1].Change.Verdict != Changed {
		t.Errorf("calls %+v", c)
	}
	// All samples of 11 and 11 are apart: p is 2/C(22, 11) = 2/705432.
	if p := throughput.P; math.Abs(p-2./705432) > 1e-12 || throughput.Corrected != 2*p {
		t.Errorf("p is %v, corrected %v; one outcome beside other metrics doubles it", p, throughput.Corrected)
	}
	perHundred := compared(t, Options{PerOp: 100}, "", before, after)[0]
	if r := row(t, perHundred, "syscalls_per_op{clock_gettime}"); math.Abs(r.Cells[0].Median.Value-138.084) > 1e-3 || r.Metric.Unit != "calls/100 ops" {
		t.Errorf("per 100: %+v", r)
	}
	perSecond := compared(t, Options{}, "", before, after)[0]
	if r := row(t, perSecond, "syscalls_per_second{clock_gettime}"); math.Abs(r.Cells[0].Median.Value-370_000) > 1e-6 || r.Metric.Unit != "calls/s" {
		t.Errorf("per second: %+v", r)
	}
	if r := row(t, perSecond, "syscalls_per_second"); r.Cells[0].Median.Value != 407_000 {
		t.Errorf("the sum is %v", r.Cells[0].Median)
	}
}

// Each figure of a counter of the processor says that it is one, also the ratio of two, and the share of time in which it
// was counted is the smallest one.
func TestHowCountersWereHad(t *testing.T) {
	instructions := runtest.Counter(2e9, "teescope_instructions_total", "mode", "user")
	cycles := runtest.Counter(1e9, "teescope_cycles_total", "mode", "user")
	exits := runtest.Counter(100, "teescope_enclave_transitions_total", "kind", "eexit", "source", "vdso_breakpoint")
	s := runtest.Spec{Repetitions: []runtest.Repetition{{
		Outcomes: []run.Outcome{{Name: "operations", Value: 50}}, Counters: []runtest.Value{instructions, cycles, exits},
	}}}
	for _, emulated := range []bool{false, true} {
		s.Conditions, s.Labels = nil, map[string]string{"emulated": strconv.FormatBool(emulated)}
		if emulated {
			s.Conditions = []run.Condition{{Name: "sgx", Value: condition.EmulatedSGX, Kind: "identity"}}
		}
		table := compared(t, Options{PerOp: 1}, "", record(t, "a", s), record(t, "b", s))[0]
		for id, want := range map[string]string{
			"instructions_per_op": "production enclaves", "instructions_per_cycle": "production enclaves", "enclave_transitions_per_op{eexit}": "vdso_breakpoint",
		} {
			if got := row(t, table, id).Metric.How; !strings.Contains(got, want) || strings.Contains(got, "emulated") != emulated {
				t.Errorf("%s was obtained by %q", id, got)
			}
		}
		if all := strings.Join(table.Notes, "\n"); strings.Count(all, "how ") != 2 || !strings.Contains(all, "how cycles_per_op, instructions_per_cycle, instructions_per_op were obtained: counter") {
			t.Errorf("notes are %s", all)
		}
	}
	at := func(n int) time.Time { return runtest.Began.Add(time.Duration(n) * time.Second) }
	share := func(workload string, values ...float64) *run.Series {
		return &run.Series{Name: runningRatio, Kind: run.Gauge, Unit: "ratio", Labels: map[string]string{"workload": workload, "counter": "cycles:user"}, Values: values}
	}
	r := &run.Run{Times: []time.Time{at(0), at(1)}, Series: []*run.Series{share("a", 1, 1), share("b", 0.25, 0.75), share("c", 1, 0.8)}}
	if got := Extract(r, "a", nil).Phases[run.Whole][0].Totals["counter_running_ratio{cycles:user}"]; got != 0.5 {
		t.Errorf("the share is %v, want the mean of 0.25 and 0.75", got)
	}
}

// A against B is B against A, the other way round.
func TestDirections(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		a, b := record(t, "a", simulated(random, 6, 1)), record(t, "b", simulated(random, 7, 1+random.Float64()))
		there, back := compared(t, Options{}, "", a, b)[0], compared(t, Options{}, "", b, a)[0]
		if len(there.Rows) != len(back.Rows) || len(there.Rows) < 10 {
			t.Fatalf("%d and %d rows", len(there.Rows), len(back.Rows))
		}
		for _, r := range there.Rows {
			x, y := r.Cells[1].Change, row(t, back, r.Metric.ID()).Cells[1].Change
			same := func(a, b float64) bool { return a == b || math.Abs(a/b-1) < 1e-9 || math.IsNaN(a) && math.IsNaN(b) }
			if !same(x.P, y.P) || !same(x.Corrected, y.Corrected) || x.Verdict.Sure() != y.Verdict.Sure() || !same(x.Detectable, y.Detectable) {
				t.Fatalf("%s: %+v and %+v", r.Metric.ID(), x, y)
			}
			if r.Cells[0].Median.Value > 0 && r.Cells[1].Median.Value > 0 && !(same(x.Ratio.Value, 1/y.Ratio.Value) && same(x.Ratio.Low, 1/y.Ratio.High)) {
				t.Fatalf("%s: %+v and %+v are not reciprocal", r.Metric.ID(), x.Ratio, y.Ratio)
			}
		}
		for i, v := range there.Blames[0].Views {
			for j, s := range v.Components {
				if o := back.Blames[0].Views[i].Components[j]; math.Abs(s.Difference.Value+o.Difference.Value) > 1e-15 || s.P != o.P {
					t.Fatalf("%+v and %+v", s, o)
				}
			}
		}
	}
}

// simulated is a run with random metrics, some with ties and zeros. factor multiplies the time of an operation.
func simulated(random *rand.Rand, n int, factor float64) (s runtest.Spec) {
	for range n {
		noise := func() float64 { return math.Exp(0.05 * random.NormFloat64()) }
		r := runtest.Repetition{Outcomes: []run.Outcome{
			runtest.Throughput(1e5 / factor * noise()),
			{Name: "latency_p99", Unit: "seconds", Value: math.Round(20*noise()) / 1e3, Better: "lower"},
		}}
		for i, name := range []string{"read", "write", "futex", "epoll_wait", "clock_gettime", "openat", "close", "mmap"} {
			r.Counters = append(r.Counters,
				runtest.Counter(math.Round(1e5/float64(i*i+1)*noise()), "teescope_syscalls_total", "syscall", name),
				runtest.Counter(0.5/float64(i+1)*noise(), "teescope_syscall_seconds_total", "syscall", name))
		}
		for _, mode := range []string{"user", "system"} {
			r.Counters = append(r.Counters, runtest.Counter(3*factor*noise(), "teescope_cpu_seconds_total", "mode", mode))
		}
		for _, name := range []string{"teescope_cpu_migrations_total", "teescope_llc_misses_total", "teescope_forks_total"} {
			r.Counters = append(r.Counters, runtest.Counter(float64(random.IntN(4)), name))
		}
		r.Counters = append(r.Counters, runtest.Counter(noise(), "teescope_run_queue_wait_seconds_total"))
		r.Gauges = []runtest.Value{runtest.Counter(1e8*noise(), "teescope_resident_memory_bytes")}
		s.Repetitions = append(s.Repetitions, r)
	}
	return s
}

// Two runs of the same are the same in at least 95 % of comparisons, and a gate without a margin fails in at most 2.5 %.
// More than 28 false tables of 200 have a chance of 3e-7 at 5 %, and more than 20 false gates of 4e-8 at 2.5 %. The seeds
// are fixed. False alarms: below 1e-6.
func TestTheSameIsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alarms, gates, blamed := 0, 0, 0
	conditions := []Condition{}
	for _, text := range []string{"throughput < -0%", "syscalls_per_second > +0%"} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, c)
	}
	const times = 200
	for range times {
		table := compared(t, Options{}, "", record(t, "a", simulated(random, 8, 1)), record(t, "b", simulated(random, 8, 1)))[0]
		for _, r := range table.Rows {
			if r.Cells[1].Change.Verdict.Sure() {
				alarms++
				break
			}
		}
		failures, err := Check([]*Table{table}, conditions)
		if err != nil {
			t.Fatal(err)
		}
		gates += min(1, len(failures))
		for _, s := range append(table.Blames[0].Views[1].Components, table.Blames[0].Views[1].Rest) {
			if s.Sure {
				blamed++
				break
			}
		}
	}
	t.Logf("of %d comparisons of the same, %d have a change, %d fail, and %d blame something", times, alarms, gates, blamed)
	if alarms > 28 || blamed > 28 || gates > 20 {
		t.Errorf("of %d comparisons of the same, %d have a change, %d fail, and %d blame something", times, alarms, gates, blamed)
	}
}

// What a table says that it can find is found in 4 of 5 comparisons. The seeds are fixed. False alarms: below 3e-7.
func TestDetectableChangesAreFound(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	found := 0
	const times = 100
	factor := 1.0
	for i := range times {
		if i == 0 { // the table of equal runs says what it can find
			table := compared(t, Options{}, "", record(t, "a", simulated(random, 40, 1)), record(t, "b", simulated(random, 40, 1)))[0]
			sd := math.Log(row(t, table, "throughput").Cells[1].Change.Detectable)
			if sd <= 0.02 || sd > 0.06 {
				t.Fatalf("40 and 40 repetitions with 5 %% of scatter detect %v", sd)
			}
			factor = math.Exp(sd)
		}
		table := compared(t, Options{}, "", record(t, "a", simulated(random, 40, 1)), record(t, "b", simulated(random, 40, factor)))[0]
		if row(t, table, "throughput").Cells[1].Change.Verdict == Worse {
			found++
		}
	}
	// 4 of 5 on average. Fewer than 58 of 100 have a chance of 1.5e-7, and all of them of 2e-10.
	if found < 58 || found == times {
		t.Errorf("a detectable change was found in %d of %d comparisons, want about 80", found, times)
	}
}

func TestFewRepetitions(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	table := compared(t, Options{}, "", record(t, "a", simulated(random, 3, 1)), record(t, "b", simulated(random, 3, 9)))[0]
	c := row(t, table, "throughput").Cells[1]
	if c.Change.Verdict != TooFew || !math.IsInf(c.Change.Detectable, 1) || c.Change.Ratio.Bounded() || c.Median.Bounded() {
		t.Errorf("%+v, %+v", c, c.Change)
	}
	// Two outcomes and others: 2*2*2/C(2n, n) is 0.0317 for n = 5 and 0.114 for n = 4.
	if notes := strings.Join(table.Notes, "\n"); !strings.Contains(notes, "3 + 3 repetitions cannot show a change of the outcomes at p <= 0.05 with this number of metrics; 5 + 5 can") {
		t.Errorf("notes: %s", notes)
	}
}

func TestConditions(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	spec := func(kernel, commit, governor string) runtest.Spec {
		s := simulated(random, 6, 1)
		s.Conditions = []run.Condition{
			{Name: "kernel", Value: kernel, Kind: "identity"}, {Name: "git_commit", Value: commit, Kind: "program"}, {Name: "image", Value: commit, Kind: "program"}, {Name: "x", Value: commit, Kind: "note"},
			{Name: "governor", Value: governor, Kind: "identity"}, {Name: "memory_bytes", Value: map[string]string{"x": "1000", "y": "1010", "z": "1000"}[commit], Kind: "identity"}, {Name: "load", Value: commit, Kind: "state"},
		}
		return s
	}
	slow := simulated(random, 6, 3)
	a, b := record(t, "a", spec("6.1", "x", "performance")), record(t, "b", spec("6.12", "y", "performance"))
	c, d := record(t, "c", spec("6.1", "z", "powersave")), record(t, "d", spec("6.1", "z", "performance"))
	slow.Conditions = spec("6.12", "y", "performance").Conditions
	verdict := func(o Options, id string, records ...*Record) (Verdict, string, *Table) {
		table := compared(t, o, "", records...)[0]
		change := row(t, table, id).Cells[1].Change
		return change.Verdict, strings.Join(change.Explains, " "), table
	}
	if v, why, table := verdict(Options{}, "throughput", a, b); v != Refused || why != "kernel" || len(table.Differences) != 4 || table.Differences[0].Name != "kernel" || table.Forced {
		t.Errorf("another kernel: %s, %s, %+v", v, why, table.Differences)
	}
	if v, why, table := verdict(Options{Force: true}, "throughput", a, record(t, "slow", slow)); v != Worse || why != "kernel" || !table.Forced {
		t.Errorf("with --force: %s, %s", v, why)
	}
	if v, why, _ := verdict(Options{PerOp: 1}, "syscalls_per_op", a, c); v == Refused || why != "" {
		t.Errorf("another governor explains no calls per operation: %s, %s", v, why)
	}
	if v, why, _ := verdict(Options{}, "syscalls_per_second", a, c); v != Refused || why != "governor" {
		t.Errorf("another governor explains a rate: %s, %s", v, why)
	}
	if v, why, _ := verdict(Options{}, "throughput", a, d); v != Noise || why != "" {
		t.Errorf("another commit is what is compared: %s, %s", v, why)
	}
	if _, err := Check([]*Table{func() *Table { _, _, table := verdict(Options{}, "throughput", a, b); return table }()}, []Condition{{Metric: "throughput", Bound: 0.9}}); err == nil ||
		!strings.Contains(err.Error(), "kernel differs") {
		t.Errorf("a gate without a verdict: %v", err)
	}
}

// Groups: by labels, by names, by files, and by one label with the others as points.
func TestGroups(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	labelled := func(file string, labels map[string]string) *Record {
		s := simulated(random, 2, 1)
		s.Labels = labels
		return record(t, file, s)
	}
	names := func(sets []Set, err error) string {
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, s := range sets {
			one := s.titleText()
			for _, g := range s.Groups {
				one += "[" + g.Name + ":"
				for _, r := range g.Records {
					one += r.File
				}
				one += "]"
			}
			all = append(all, one)
		}
		return strings.Join(all, " ")
	}
	var sweep []*Record
	for i, point := range []string{"80", "8"} {
		for j, framework := range []string{"native", "sgx"} {
			sweep = append(sweep, labelled(string(rune('a'+2*i+j)), map[string]string{"connections": point, "framework": framework, "host": "x"}))
		}
	}
	plain := []*Record{labelled("x/a", nil), labelled("x/b", nil)}
	for _, c := range []struct {
		got, want string
	}{
		{names(Split(sweep, make([]string, 4), "framework")), "connections=8[native:c][sgx:d] connections=80[native:a][sgx:b]"},
		{names(Split(sweep[:2], make([]string, 2), "")), "[native:a][sgx:b]"},
		{names(Split(plain, make([]string, 2), "")), "[a:x/a][b:x/b]"},
		{names(Split(append(plain, sweep[0]), []string{"old", "old", "new"}, "")), "[old:x/ax/b][new:a]"},
		{names(Split(sweep[:1], make([]string, 1), "")), `all runs are one group, "a": give the files other labels, or name the groups, for example: before=a.tsrun after=b.tsrun`},
		{names(Split(sweep, make([]string, 4), "size")), "--by size: the runs do not differ in this label; they differ in connections, framework"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for s, want := range map[string]float64{"8": 8, "78M": 78 << 20, "1.5KiB": 1536, "2k": 2048, "-1": -1} {
		if v, ok := numberOf(s); !ok || v != want {
			t.Errorf("numberOf(%q) = %v, %v", s, v, ok)
		}
	}
	for _, s := range []string{"", "native", "8x", "M", "8MM", "NaN", "1iB2"} {
		if v, ok := numberOf(s); ok {
			t.Errorf("numberOf(%q) = %v", s, v)
		}
	}
}

// What is wrong with a recording is said, and a failed repetition does not count.
func TestRecordings(t *testing.T) {
	r, err := runtest.Run(simulated(rand.New(rand.NewPCG(13, 14)), 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	r.End.Status[1] = 7
	for reason, want := range map[string]string{"done": "repetition 2 ended with status 7 and counts", "failed": "the recording ended early: failed;repetition 2 ended with status 7 and is left out"} {
		r.End.Reason = reason
		x := Extract(r, "a", nil)
		if n := len(x.Phases[run.Whole]); (n == 3) != (reason == "done") || strings.Join(x.Notes, ";") != want {
			t.Errorf("%d repetitions, %q, want %q", n, x.Notes, want)
		}
	}
	r.End = nil
	if x := Extract(r, "a", nil); len(x.Phases[run.Whole]) != 3 || strings.Join(x.Notes, "") != "the recording was cut off" {
		t.Errorf("%q", x.Notes)
	}
}

// Only watched workloads count. A gap is no restart.
func TestTotals(t *testing.T) {
	none := math.NaN()
	at := func(s int) time.Time { return runtest.Began.Add(time.Duration(s) * time.Second) }
	series := func(workload, name string, values ...float64) *run.Series {
		return &run.Series{Name: name, Labels: map[string]string{"workload": workload, "syscall": "read"}, Kind: run.Counter, Values: values}
	}
	r := &run.Run{
		Times: []time.Time{at(0), at(1), at(2), at(3)},
		Series: []*run.Series{
			series("app", "teescope_syscalls_total", none, none, 5, 9),          // began at 0
			series("app", "teescope_context_switches_total", 1, 100, none, 104), // a gap
			series("app", "teescope_cpu_migrations_total", 1, 50, 3, 4),         // a restart
			series("app", "teescope_process_syscalls_total", 0, 0, 0, 0),
			series("other", "teescope_syscalls_total", 0, 100, 200, 300),
			{Name: "my_requests_total", Kind: run.Counter, Unit: "requests", Values: []float64{0, 1, 2, 30}},
			{Name: "node_load1", Kind: run.Gauge, Values: []float64{1, 1, 1, 1}},
		},
		Phases: []run.Phase{{Name: run.Whole, Repetition: 1, From: at(1), To: at(3)}},
	}
	x := Extract(r, "a", nil)
	got := x.Phases[run.Whole][0]
	want := map[string]float64{"syscalls": 4, "syscalls{read}": 4, "context_switches": 4, "context_switches{unnamed}": 4, "cpu_migrations": 4, "my_requests": 29}
	if len(got.Totals) != len(want) || got.Seconds != 2 {
		t.Errorf("%+v, want %v", got, want)
	}
	for name, v := range want {
		if got.Totals[name] != v {
			t.Errorf("%s is %v, want %v", name, got.Totals[name], v)
		}
	}
	r.Meta.Watch = []string{"comm=other"}
	if x := Extract(r, "a", nil); len(x.Workloads) != 1 || x.Workloads[0] != "other" {
		t.Errorf("watched are %q", x.Workloads)
	}
	r.Meta.Watch = []string{"comm=other", "cgroup=/x"} // one rule names no workload
	if x := Extract(r, "a", nil); len(x.Workloads) != 1 || x.Workloads[0] != "app" {
		t.Errorf("watched are %q", x.Workloads)
	}
	if all := Extract(r, "a", []string{"other"}).Phases[run.Whole][0].Totals["syscalls"]; all != 200 {
		t.Errorf("the other workload made %v calls, want 200", all)
	}
}

// A file whose phases all span all samples takes no longer than a few of them: 20,000 phases over 1,000 samples of 1,000
// series would be 2e10 values.
func TestHostileFiles(t *testing.T) {
	r := &run.Run{Meta: run.Meta{Started: runtest.Began}}
	for i := range 1000 {
		r.Times = append(r.Times, runtest.Began.Add(time.Duration(i)*time.Second))
	}
	values := make([]float64, len(r.Times))
	for i := range 1000 {
		r.Series = append(r.Series, &run.Series{Name: "teescope_ocalls_total", Labels: map[string]string{"ocall": strings.Repeat("x", i)}, Kind: run.Counter, Values: values})
	}
	for i := range 20_000 {
		r.Phases = append(r.Phases, run.Phase{Name: run.Whole, Repetition: i, From: r.Times[0], To: r.Times[999]}, run.Phase{Name: "x", Repetition: -i, From: r.Times[999], To: r.Times[0]})
	}
	began := time.Now()
	x := Extract(r, "a", nil)
	if n := len(x.Phases[run.Whole]); n == 0 || n > 10 || time.Since(began) > 10*time.Second {
		t.Errorf("%d repetitions after %s", n, time.Since(began))
	}
	if n := len(x.Metrics); n > maxParts+2 || !strings.Contains(strings.Join(x.Notes, " "), "overlap too often") {
		t.Errorf("%d metrics, %q", n, x.Notes)
	}
}

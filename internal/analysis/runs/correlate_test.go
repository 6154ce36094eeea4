// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/querytest"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/stat"
)

func read(t *testing.T, text string) []Run {
	t.Helper()
	runs, err := Read("runs", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// shown returns runs as a text, without their owners.
func shown(runs []Run) string {
	all := make([]string, len(runs))
	for i, r := range runs {
		all[i] = fmt.Sprintf("{%v %v}", r.Settings, r.Outcomes)
	}
	return fmt.Sprint(all)
}

func TestReadRuns(t *testing.T) {
	byCSV := read(t, "# of a Monday\nsetting:threads, setting:exitless,outcome:throughput\n1,on,1000\n2,off,\n4,,2e3\n")
	byJSON := read(t, `{"runs": [
		{"settings": {"threads": 1, "exitless": "on"}, "outcomes": {"throughput": 1000}},
		{"settings": {"threads": 2, "exitless": "off"}, "outcomes": {}},
		{"settings": {"threads": 4, "exitless": null}, "outcomes": {"throughput": 2e3}}]}`)
	for name, runs := range map[string][]Run{"CSV": byCSV, "JSON": byJSON} {
		if got := shown(runs); got != "[{map[exitless:on threads:1] map[throughput:1000]} {map[exitless:off threads:2] map[]} {map[threads:4] map[throughput:2000]}]" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestReadRunsSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                             "runs:1: there is nothing in it; the first line has the names",
		"threads,throughput\n1,2":                                      `runs:1: column 1 is called "threads": it must be setting:NAME or outcome:NAME`,
		"setting:a,outcome:b\n1,2\n3,fast\n":                           `runs:3: outcome b is "fast", and must be a number`,
		"setting:a,outcome:b\n1,2\n3\n":                                "runs:3: wrong number of fields",
		"setting:a,setting:a,outcome:b\n":                              "column 2",
		"setting:a,outcome:b\n":                                        "runs:1: 0 runs with 0 settings and 0 outcomes",
		"setting:a,outcome:b\n\"1,2":                                   "runs:2: ",
		"{\"runs\": [\n{\"settings\": {\"a\": [1]}}]}":                 "runs:1: run 1: a setting is a text, a number, true or false",
		"{\"runs\": [\n{\"outcomes\": {\"a\": \"x\"}}]}":               "runs:2: ",
		"{\"runs\": [{\"setting\": {}}]}":                              "unknown field",
		"{\"runs\": [\n\n!]}":                                          "runs:3: ",
		"{\"runs\": []} {}":                                            "something after the table",
		"setting:a,outcome:b\n1,2\n\x1b[2J,3\n":                        "cannot be printed",
		"setting:a,outcome:b\n" + strings.Repeat("1,2\n", maxRuns+1):   "more than 10000 runs",
		"setting:" + strings.Repeat("a", 200) + ",outcome:b\n1,2\n":    "1 to 128 printable bytes",
		"setting:a,outcome:b\n" + strings.Repeat("#\n", 9<<20) + "1,2": "larger than 16 MiB",
	} {
		_, err := Read("runs", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadRuns(%.40q) = %v, want %q", text, err, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{"4": 4, "-0.5": -0.5, "256M": 256 << 20, "1K": 1024, "2G": 2 << 30} {
		if got, ok := number(text); !ok || got != want {
			t.Errorf("number(%q) = %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "on", "M", "NaN", "inf", "1e400", "1 2"} {
		if v, ok := number(text); ok {
			t.Errorf("number(%q) = %v", text, v)
		}
	}
}

// gramine returns synthetic runs. Throughput saturates with threads, Exitless multiplies it, the log level has no
// effect, and the cache grows with the threads.
func gramine() []Run {
	random := rand.New(rand.NewPCG(1, 2))
	var runs []Run
	for i := range 48 {
		threads := []float64{1, 2, 4, 8, 16, 32}[i%6]
		exitless, factor := "off", 1.0
		if i/6%2 == 1 {
			exitless, factor = "on", 4
		}
		level := []string{"error", "debug", "trace"}[i%3]
		noise := math.Exp(0.05 * random.NormFloat64())
		runs = append(runs, Run{
			Settings: map[string]string{
				"threads": strconv.Itoa(int(threads)), "exitless": exitless, "level": level, "enclave": "256M",
				"cache": strconv.Itoa(int(threads)*64) + "M", "retries": strconv.Itoa(random.IntN(5)),
			},
			Outcomes: map[string]float64{"throughput": 90_000 * threads / (6 + threads) * factor * noise, "exits": 1000 * threads * noise},
		})
	}
	return runs
}

func TestCorrelate(t *testing.T) {
	c := Correlate(gramine())
	if c.Runs != 48 || c.Tests != 8 { // threads, exitless, cache and retries on two outcomes
		t.Errorf("%+v", c)
	}
	sure := make(map[string]Effect)
	for _, e := range c.Effects {
		if e.sure() {
			sure[e.Setting+" "+e.Outcome] = e
		}
	}
	e := sure["threads throughput"]
	if e.Rho.Value < 0.5 || e.Rho.Low <= 0 || e.Rho.N != 48 {
		t.Errorf("threads: %+v", e)
	}
	if e := sure["exitless throughput"]; e.Rho.Value <= 0 || strings.Join(e.Codes, " ") != "off on" {
		t.Errorf("exitless: %+v", e)
	}
	for _, wrong := range []string{"retries throughput", "retries exits", "exitless exits"} {
		if e, there := sure[wrong]; there {
			t.Errorf("%s: %+v", wrong, e)
		}
	}
	if fmt.Sprint(c.Together) != "[[cache threads]]" {
		t.Errorf("together: %v", c.Together)
	}
	if notes := strings.Join(c.Notes, "; "); !strings.Contains(notes, "enclave is the same in all runs") || !strings.Contains(notes, "level has 3 values") {
		t.Errorf("notes: %s", notes)
	}
}

// TestTogether: a setting of two values that follows another one is reported, although its correlation is at most 0.88.
func TestTogether(t *testing.T) {
	c := Correlate(read(t, "setting:threads,setting:exitless,outcome:throughput\n1,off,1\n2,off,2\n4,off,3\n8,on,4\n16,on,5\n32,on,7\n"))
	if fmt.Sprint(c.Together) != "[[exitless threads]]" {
		t.Errorf("%+v", c)
	}
	c = Correlate(read(t, "setting:threads,setting:exitless,outcome:throughput\n1,off,1\n2,on,2\n4,off,3\n8,on,4\n16,off,5\n32,on,7\n"))
	if len(c.Together) > 0 {
		t.Errorf("%+v", c)
	}
}

// TestCorrelateNoise: at most 5 % of the tables without an effect have a significant one.
func TestCorrelateNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const times = 300
	wrong := 0
	for range times {
		runs := make([]Run, 15)
		for i := range runs {
			runs[i] = Run{Settings: map[string]string{}, Outcomes: map[string]float64{}}
			for j := range 6 {
				runs[i].Settings["s"+strconv.Itoa(j)] = strconv.Itoa(random.IntN(100))
				runs[i].Outcomes["o"+strconv.Itoa(j)] = random.NormFloat64()
			}
		}
		for _, e := range Correlate(runs).Effects {
			if e.sure() {
				wrong++
				break
			}
		}
	}
	if share := float64(wrong) / times; share > 0.05+3*math.Sqrt(0.05*0.95/times) {
		t.Errorf("%.1f %% of %d tables without an effect have a significant one", 100*share, times)
	}
}

func TestPredict(t *testing.T) {
	var runs []Run
	for _, r := range gramine() {
		if r.Settings["exitless"] == "off" {
			runs = append(runs, r)
		}
	}
	f, err := Predict(runs, "throughput", map[string]float64{"threads": 12})
	if err != nil {
		t.Fatal(err)
	}
	truth := 90_000.0 * 12 / 18
	if p := f.Prediction; f.Shape != stat.Saturating || p.Extrapolates || p.Low > truth || p.High < truth || p.High > 1.4*truth || p.N != 24 {
		t.Errorf("%+v", f)
	}
	f, err = Predict(gramine(), "throughput", map[string]float64{"threads": 64})
	if err != nil || !f.Prediction.Extrapolates {
		t.Fatalf("%+v, %v", f, err)
	}
	if w := strings.Join(f.Warnings, "; "); !strings.Contains(w, "outside those that were tried") || !strings.Contains(w, "exitless varied in the runs") {
		t.Errorf("warnings: %s", w)
	}
	for want, at := range map[string]map[string]float64{
		"no run has \"throughput\" and numbers": {"memory": 1}, "change together": {"threads": 1, "cache": 1 << 26},
	} {
		if _, err := Predict(gramine(), "throughput", at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Predict(%v) = %v", at, err)
		}
	}
	if _, err := Predict(gramine(), "latency", map[string]float64{"threads": 1}); err == nil || !strings.Contains(err.Error(), `no run has the outcome "latency"`) {
		t.Errorf("%v", err)
	}
}

// TestPredictPeak: more threads than the peak of throughput are predicted to be slower.
func TestPredictPeak(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var runs []Run
	throughput := func(n float64) float64 { return 1000 * n / (1 + 0.05*(n-1) + 0.002*n*(n-1)) } // its peak is at 22 threads
	for _, n := range []float64{1, 2, 4, 8, 16, 32, 64, 128} {
		for range 3 {
			runs = append(runs, Run{Settings: map[string]string{"threads": fmt.Sprint(n)}, Outcomes: map[string]float64{"throughput": throughput(n) * math.Exp(0.03*random.NormFloat64())}})
		}
	}
	for _, n := range []float64{22, 100} {
		f, err := Predict(runs, "throughput", map[string]float64{"threads": n})
		if err != nil || f.Shape != stat.Scalability || f.Prediction.Low > throughput(n) || f.Prediction.High < throughput(n) || f.Prediction.High > 1.2*throughput(n) {
			t.Fatalf("at %v: %+v, %v", n, f, err)
		}
		if w := strings.Join(f.Warnings, "; "); !strings.Contains(w, "greatest at threads=2") {
			t.Errorf("warnings: %s", w)
		}
	}
}

// TestPredictCliff: where throughput falls between two settings, the forecast says between which.
func TestPredictCliff(t *testing.T) {
	text := "setting:enclave,outcome:throughput\n"
	for i, size := range []int{32, 48, 64, 80, 128, 160, 192, 256} {
		for _, percent := range []int{-2, 0, 2} {
			level := 10_000
			if size > 80 {
				level = 400 + i
			}
			text += fmt.Sprintf("%dM,%d\n", size, level+level*percent/100)
		}
	}
	f, err := Predict(read(t, text), "throughput", map[string]float64{"enclave": 100 << 20})
	if err != nil || f.Prediction.Low > 410 || f.Prediction.High < 10_000 {
		t.Fatalf("%+v, %v", f, err)
	}
	if w := strings.Join(f.Warnings, "; "); !strings.Contains(w, "breaks between enclave=8.4e+07 and enclave=1.3e+08") {
		t.Errorf("warnings: %s", w)
	}
}

// TestRunsFromSeries: the labels of an info metric are the settings, and a run is the time in which they stay the same.
func TestRunsFromSeries(t *testing.T) {
	step := time.Minute
	info := func(threads string, from, to int) query.Series {
		s := query.Series{Labels: map[string]string{"__name__": "redis_config_info", "instance": "here", "job": "redis", "workload": "redis", "io_threads": threads}}
		for i := from; i <= to; i++ {
			s.Points = append(s.Points, query.Point{Time: querytest.Noon.Add(time.Duration(i) * step), Value: 1})
		}
		return s
	}
	again := info("1", 0, 9)
	again.Points = append(again.Points, info("1", 25, 29).Points...)
	source := &querytest.Canned{Ranges: map[string][]query.Series{"redis_config_info": {again, info("4", 10, 19), info("8", 20, 21)}},
		Value: map[string]func(time.Time) map[string]float64{"ops": func(at time.Time) map[string]float64 {
			return map[string]float64{"redis": at.Sub(querytest.Noon).Minutes()}
		}}}
	runs, problems := FromSeries(t.Context(), source, SeriesTable{
		Info: "redis_config_info", Outcomes: map[string]string{"throughput": "rate(ops[1m])"}, Start: querytest.Noon, End: querytest.Noon.Add(30 * step), Step: step,
	})
	if got := shown(runs); len(problems) > 0 || got != "[{map[io_threads:1] map[throughput:4.5]} {map[io_threads:4] map[throughput:14.5]} {map[io_threads:1] map[throughput:27]}]" {
		t.Errorf("%s, %+v", got, problems)
	}
	if _, problems := FromSeries(t.Context(), &querytest.Canned{}, SeriesTable{Info: "x", End: querytest.Noon, Step: step}); len(problems) != 1 {
		t.Errorf("of nothing: %+v", problems)
	}
}

// TestRunsOfSeveralProcesses: settings of a metric, and outcomes of a query, that belong to several processes or to other
// workloads make no run of their own.
func TestRunsOfSeveralProcesses(t *testing.T) {
	step := time.Minute
	series := func(workload, port, threads, mode string) query.Series {
		s := query.Series{Labels: map[string]string{"instance": "here", "workload": workload, "port": port, "threads": threads, "mode": mode}}
		for i := range 10 {
			s.Points = append(s.Points, query.Point{Time: querytest.Noon.Add(time.Duration(i) * step), Value: 1})
		}
		return s
	}
	two := []query.Series{series("redis", "1", "4", "x"), series("redis", "2", "8", "x"), series("other", "3", "16", "y")}
	source := &querytest.Canned{Ranges: map[string][]query.Series{"info": two, "each": two, "ops": {series("redis", "", "", ""), series("other", "", "", "")}}}
	runs, problems := FromSeries(t.Context(), source, SeriesTable{
		Workload: "redis", Info: "info", Outcomes: map[string]string{"each": "each", "ops": "ops"}, Start: querytest.Noon, End: querytest.Noon.Add(9 * step), Step: step,
	})
	if got := shown(runs); got != "[{map[mode:x] map[ops:1]}]" || len(problems) != 1 || !strings.Contains(problems[0].Error, "sum by (instance, workload)") {
		t.Errorf("%s, %+v", got, problems)
	}
}

// TestRunsFromPairs: each setting is a series. Two machines run the same workload. On one of them the variable is removed
// after ten minutes, and on the other one two containers of the workload disagree about it for a while.
func TestRunsFromPairs(t *testing.T) {
	step := time.Minute
	series := func(from, to int, labels ...string) query.Series {
		s := query.Series{Labels: map[string]string{"workload": "redis"}}
		for i := 0; i < len(labels); i += 2 {
			s.Labels[labels[i]] = labels[i+1]
		}
		for i := from; i <= to; i++ {
			s.Points = append(s.Points, query.Point{Time: querytest.Noon.Add(time.Duration(i) * step), Value: 1})
		}
		return s
	}
	source := &querytest.Canned{Ranges: map[string][]query.Series{
		"setting": {
			series(0, 9, "instance", "a", "setting", "ARENAS", "value", "1"), series(0, 29, "instance", "a", "setting", "MODE", "value", "x"),
			series(0, 29, "instance", "b", "setting", "ARENAS", "value", "4"), series(10, 19, "instance", "b", "setting", "ARENAS", "value", "8"),
		},
		"known": {series(0, 29, "instance", "a"), series(0, 29, "instance", "b"), series(0, 9, "instance", "c")},
		"ops":   {series(0, 29, "instance", "a"), series(0, 29, "instance", "b"), series(0, 9, "instance", "c")},
	}}
	table := SeriesTable{Pairs: "setting", Known: "known", Outcomes: map[string]string{"n": "ops"}, Start: querytest.Noon, End: querytest.Noon.Add(30 * step), Step: step}
	runs, problems := FromSeries(t.Context(), source, table)
	want := []string{
		"map[ARENAS:1 MODE:x] map[n:1]", "map[ARENAS:unset MODE:x] map[n:1]", // a
		"map[ARENAS:4 MODE:unset] map[n:1]", "map[MODE:unset] map[n:1]", "map[ARENAS:4 MODE:unset] map[n:1]", // b
		"map[ARENAS:unset MODE:unset] map[n:1]", // c, which has none
	}
	var got []string
	for _, r := range runs {
		got = append(got, fmt.Sprint(r.Settings, " ", r.Outcomes))
	}
	if len(problems) > 0 || !slices.Equal(got, want) {
		t.Errorf("%v\n%q, want\n%q", problems, got, want)
	}
	delete(source.Ranges, "known")
	if runs, problems := FromSeries(t.Context(), source, table); len(runs) != 0 || len(problems) != 1 {
		t.Errorf("without knowing whose settings are known: %v, %v", runs, problems)
	}
}

// TestSettingsOfSeriesAreBounded: each setting is compared with each other one over all runs, and programs choose the names.
func TestSettingsOfSeriesAreBounded(t *testing.T) {
	step := time.Minute
	var points []query.Point
	for i := range 10 {
		points = append(points, query.Point{Time: querytest.Noon.Add(time.Duration(i) * step), Value: 1})
	}
	owner := map[string]string{"instance": "a", "workload": "redis"}
	labels := maps.Clone(owner)
	var pairs []query.Series
	for i := range 1000 {
		name := fmt.Sprintf("s%03d", i)
		labels[name] = "1"
		pairs = append(pairs, query.Series{Labels: map[string]string{"instance": "a", "workload": "redis", "setting": name, "value": "1"}, Points: points})
	}
	source := &querytest.Canned{Ranges: map[string][]query.Series{"info": {{Labels: labels, Points: points}}, "pairs": pairs, "known": {{Labels: owner, Points: points}}}}
	for what, table := range map[string]SeriesTable{"labels": {Info: "info"}, "pairs": {Pairs: "pairs", Known: "known"}} {
		table.Start, table.End, table.Step = querytest.Noon, querytest.Noon.Add(9*step), step
		runs, problems := FromSeries(t.Context(), source, table)
		if len(runs) != 1 || len(runs[0].Settings) != maxColumns || runs[0].Settings["s063"] != "1" {
			t.Errorf("%s: %d runs, %+v", what, len(runs), runs)
		}
		if len(problems) != 1 || problems[0].Kind != query.Bounded {
			t.Errorf("%s: %+v", what, problems)
		}
	}
}

// TestLive: the queries are PromQL, and cover the time in whole steps.
func TestLive(t *testing.T) {
	end := querytest.Noon.Add(17 * time.Second)
	for span, step := range map[time.Duration]time.Duration{10 * time.Minute: time.Minute, 24 * time.Hour: 3 * time.Minute, 7 * 24 * time.Hour: 20 * time.Minute} {
		live := Live(`a"b\c`, "", nil, end, span)
		if live.Step != step || live.End.Sub(live.Start) > span+step || int(live.End.Sub(live.Start)/live.Step) > 600 {
			t.Errorf("%s: %s to %s in steps of %s, want %s", span, live.Start, live.End, live.Step, step)
		}
		for name, expr := range live.Outcomes {
			if _, err := promql.Rename(expr, "x", "y"); err != nil || strings.Contains(expr, "$") || !strings.Contains(expr, `workload="a\"b\\c"`) {
				t.Errorf("%s: %s: %v", name, expr, err)
			}
		}
	}
}

// FuzzRuns: a table is read and rendered, or the error names the position and is printable.
func FuzzRuns(f *testing.F) {
	f.Add("setting:threads,outcome:throughput\n1,2\n2,3\n3,5\n4,6\n5,7\n6,9\n")
	f.Add("{\"runs\": [{\"settings\": {\"a\": true, \"b\": \"256M\"}, \"outcomes\": {\"c\": -1e308}}, {\"settings\": {\"a\": \"\\u001b\"}}]}")
	f.Add("setting:a,setting:b,outcome:c\non,1,1e308\noff,2,-1e308\non,3,0\n\"off\",1e308,5e-324\non,-1e308,1\noff,0,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		runs, err := Read("runs", strings.NewReader(text))
		if err != nil {
			if !regexp.MustCompile(`^runs:\d+: `).MatchString(err.Error()) || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q", err)
			}
			return
		}
		if len(runs) > 64 {
			runs = runs[:64] // reading is bounded; what follows takes time
		}
		c := Correlate(runs)
		at := make(map[string]float64)
		for name := range runs[0].Settings {
			at[name] = 1
		}
		var forecast *Forecast
		for name := range runs[0].Outcomes {
			if forecast, err = Predict(runs, name, at); err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q", err)
			}
		}
		for _, e := range c.Effects {
			if !(e.P >= 0 && e.P <= 1) || !(e.Rho.Low <= e.Rho.Value && e.Rho.Value <= e.Rho.High) {
				t.Errorf("%+v", e)
			}
		}
		var told bytes.Buffer
		if err := c.Text(&told); err != nil {
			t.Error(err)
		}
		if strings.ContainsFunc(strings.ReplaceAll(told.String(), "\n", ""), unicode.IsControl) {
			t.Errorf("%q", told.String())
		}
		told.Reset()
		if err := WriteJSON(&told, c, forecast); err != nil || !json.Valid(told.Bytes()) {
			t.Errorf("%v: %s", err, told.Bytes())
		}
	})
}

// TestRunsOfAMachineAreNoObservations: ten machines have eight runs each, and half of the machines have another setting, which does
// nothing. Machines differ by 30 %, and runs of a machine by 5 %. At most a twentieth of the tables may show an effect.
func TestRunsOfAMachineAreNoObservations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const tables = 400
	wrong, predicted := 0, 0
	for range tables {
		var runs []Run
		for m := range 10 {
			machine := math.Exp(0.3 * random.NormFloat64())
			for range 8 {
				runs = append(runs, Run{Owner: strconv.Itoa(m), Settings: map[string]string{"threads": strconv.Itoa(1 + m%2)},
					Outcomes: map[string]float64{"throughput": 1000 * machine * math.Exp(0.05*random.NormFloat64())}})
			}
		}
		c := Correlate(runs)
		if len(c.Effects) != 1 || c.Effects[0].Rho.N != 10 {
			t.Fatalf("%d effects, n=%d, want one of 10 machines", len(c.Effects), c.Effects[0].Rho.N)
		}
		if c.Effects[0].sure() {
			wrong++
		}
		f, err := Predict(runs, "throughput", map[string]float64{"threads": 2})
		if err != nil {
			t.Fatal(err)
		}
		another := 1000 * math.Exp(0.3*random.NormFloat64())
		if f.Prediction.Low <= another && another <= f.Prediction.High {
			predicted++
		}
	}
	// Three standard errors of 5 % in 400 tables are 3.3 %.
	if wrong > 33 || predicted < 367 {
		t.Errorf("%d of %d tables show an effect, and %d intervals of a prediction hold", wrong, tables, predicted)
	}
	t.Logf("%d of %d tables show an effect, and %d intervals of a prediction hold", wrong, tables, predicted)
}

// TestRunsOfAnExperimentAreObservations: runs without an owner count each.
func TestRunsOfAnExperimentAreObservations(t *testing.T) {
	runs := read(t, "setting:threads,outcome:throughput\n1,10\n1,11\n1,12\n2,20\n2,21\n2,22\n")
	if c := Correlate(runs); len(c.Effects) != 1 || c.Effects[0].Rho.N != 6 {
		t.Errorf("%+v, want an effect of 6 runs", c.Effects)
	}
}

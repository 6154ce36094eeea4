// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/goldentest"
	"github.com/teescope/teescope/internal/lib/stat"
)

var update = flag.Bool("update", false, "write the golden files again")

func golden(t *testing.T, name, got string) {
	t.Helper()
	goldentest.Check(t, filepath.Join("testdata", name), got, *update)
}

var at = time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC)

func ptr(v float64) *float64 { return &v }

// found returns a result with findings of each kind, and with problems.
func found() engine.Result {
	return engine.Result{
		At: at, Window: 5 * time.Minute, Workloads: 14,
		Findings: []analysis.Finding{
			{
				ID: "0a1b2c3d4e5f", Rule: "chatty-syscall", Title: "a system call that need not leave the enclave",
				Workload: "redis-server", Instance: "node1:9750",
				Cause: "clock_gettime is called 370,000 times a second, ten times for each read or write that it serves, " +
					"and each call leaves the enclave.",
				Severity: analysis.High, Confidence: analysis.Likely,
				FirstSeen: at.Add(-22 * time.Minute), LastSeen: at,
				Evidence: []analysis.Evidence{
					{
						Name: "calls{syscall=clock_gettime}", Value: 370_000, Unit: "1/s", N: 60,
						Query: `sum by (workload, instance, syscall) (rate(teescope_syscalls_total{workload="redis",syscall="clock_gettime"}[5m]))`,
					},
					{Name: "CPU time", Value: 0.97, Unit: "ratio", Low: ptr(0.95), High: ptr(0.99), N: 60, Query: "sum(rate(teescope_cpu_seconds_total[5m]))"},
				},
				Advice: []string{"Use a runtime whose clock stays inside: SCONE after commit 09fea91, Gramine with a trusted time source.", "Ask for the time once a batch."},
				Saving: &estimate.Saving{Low: 0.29, High: 0.57, Assumptions: []string{"an OCALL costs 8000 to 14000 cycles"}},
				Gain: &estimate.Gain{Low: 0.5, High: 1.4, Limit: "its busiest thread, which runs for 97 % of the time",
					Assumptions: []string{"an OCALL costs 8000 to 14000 cycles", "the rest of the work takes as long as now"}},
				Threads: []analysis.Threads{
					{Name: "redis-server", Count: 1, Figure: analysis.ThreadCPU, Value: 0.96, Unit: "cores"},
					{Name: "bio_aof", Count: 3, Figure: analysis.ThreadSleeps, Value: 1200, Unit: "1/s"},
					{Name: "jemalloc_bg_thd", Count: 2, Figure: analysis.ThreadQueue, Value: 0.01, Unit: "threads"},
				},
				NotWhen: []string{"The runtime answers the call inside the enclave: then the kernel would not see it."},
				Sources: []string{"TEEMon, Middleware 2020, section 6.4"}, Explains: []string{"ocall-bound", "context-switch-storm"},
				Code: &codelink.Code{
					Event: codelink.Calls, Command: "sudo teescope profile record --event syscalls --for 30s --watch workload=redis-server -o code.pb.gz && sudo teescope profile convert code.pb.gz code.html",
					Profile: "/api/profiles/merged?format=html&workload=redis-server&start=1&end=2", Change: "/api/profiles/merged?format=html&base.start=0&base.end=1",
					Functions: &codelink.Functions{Samples: 812, Unnamed: 0.04, Top: []codelink.Function{
						{Name: "getMonotonicUs", Share: 0.41, Low: 0.36, High: 0.46}, {Name: "writeToClient", Share: 0.002, Low: 0.0001, High: 0.01}}},
				},
				Runbook: "docs/runbooks/chatty-syscall.md",
			},
			{
				ID: "1", Rule: "epc-thrashing", Title: "enclave memory that does not fit", Workload: "db", Severity: analysis.Medium, Confidence: analysis.Measured,
				Cause: "Pages are loaded back.", FirstSeen: at, LastSeen: at,
				Evidence: []analysis.Evidence{{Name: "resident", Value: 94 << 20, Unit: "bytes", Query: "x"}}, Advice: []string{"Give it 127 MiB."}, Gain: &estimate.Gain{High: 0.12, Limit: "one thread"},
			},
			{
				ID: "2", Rule: "memory-pressure", Title: "pressure of the host", Severity: analysis.Info, Confidence: analysis.Possible,
				Cause: "It is not the TEE.", FirstSeen: at, LastSeen: at,
				Evidence: []analysis.Evidence{{Name: "stalled", Value: 0.0123, Unit: "seconds", Query: "y"}}, Advice: []string{"Add memory."},
			},
		},
		Problems: []query.Problem{
			{Kind: query.Absent, Query: "sgx_x", Error: "no samples", Rules: []string{"slow-start"}},
			{Kind: query.Gap, Workload: "cron", Instance: "node1:9750", Error: "it was there for 20 % of the window"},
			{Kind: query.Failed, Query: "sum(x)", Error: "no answer within 10s", Rules: []string{"numa-remote"}},
		},
		Limits: []engine.Limit{
			{
				Workload: "redis-server", Instance: "node1:9750", Limit: engine.LimitCPU, Window: 300,
				Because:  "its busiest thread, which runs for 97 % of the time",
				Evidence: []analysis.Evidence{{Name: "busiest", Value: 0.97, Unit: "ratio", N: 60, Query: "max(busiest)"}, {Name: "nan", Value: math.NaN()}},
			},
			{Workload: "cron", Instance: "node1:9750", Limit: engine.LimitUnknown, Window: 300, Because: "samples cover only 20 % of the window"},
		},
		LimitsLeftOut: 2,
		Checked:       []string{"chatty-syscall", "epc-thrashing", "memory-pressure"},
		Skipped: []engine.Skip{
			{Rule: "exitless", Reason: "none of the signals is measured"},
			{Rule: "numa-remote", Reason: "signal remote: no answer within 10s"},
			{Rule: "slow-start", Reason: "none of the signals is measured"},
		},
	}
}

func nothing() engine.Result {
	return engine.Result{At: at, Window: 5 * time.Minute, Workloads: 3, Checked: []string{"a", "b"}}
}

// hostile returns a result with a program name that an attacker chose.
func hostile() engine.Result {
	evil := "\x1b[2J`|<script>[x](http://x)\n# " + strings.Repeat("a", 10_000)
	return engine.Result{
		At: at, Window: time.Minute, Workloads: 1,
		Findings: []analysis.Finding{{
			ID: "1", Rule: "r", Title: "t", Workload: evil, Cause: evil, Severity: analysis.High, Confidence: analysis.Likely,
			Evidence: []analysis.Evidence{{Name: evil, Value: math.Inf(1), Unit: evil, Query: evil}}, Advice: []string{evil},
		}},
		Problems: []query.Problem{{Kind: query.Broken, Workload: evil, Error: evil}},
		Limits: []engine.Limit{{
			Workload: evil, Instance: evil, Limit: engine.LimitClients, Window: 60, Because: evil,
			Evidence: []analysis.Evidence{{Name: evil, Value: 1, Unit: evil, Query: evil}},
		}},
	}
}

// windows returns box plots with all kinds of units.
func windows() []window.Stat {
	box := func(name, unit, workload string, x ...float64) window.Stat {
		return window.Stat{
			Metric: window.Metric{Name: name, Unit: unit}, Workload: workload, Instance: "node1:9750", At: at, Window: 5 * time.Minute,
			Box: stat.BoxOf(x),
		}
	}
	return []window.Stat{
		box("sgx_epc_free_bytes", "bytes", "", 1<<20, 2<<20, 3<<20, 4<<20, 8<<20),
		box("teescope_cpu_seconds", "seconds/s", "redis", 0.5, 0.5, 0.5, 0.5, 0.5),
		box("teescope_syscalls", "calls/s", "redis", 1000, 36_000, 36_500, 37_000, 37_000, 37_500, 38_000, 90_000),
	}
}

func TestPlot(t *testing.T) {
	for _, s := range windows() {
		r := New("x", nothing(), 0, nil).WithWindows([]window.Stat{s})
		if n := utf8.RuneCountInString(r.Windows[0].plot()); n > plotColumns || n == 0 {
			t.Errorf("%s: %d columns", s.Metric.Name, n)
		}
	}
	b := Box{Min: 0, WhiskerLow: 10, Q1: 20, Median: 25, Q3: 30, WhiskerHigh: 35, Max: 39, N: 9}
	if got, want := b.plot(), "·         ├─────────█████┃█████────┤   ·"; got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestText(t *testing.T) {
	for name, r := range map[string]Report{
		"found.txt":    New("127.0.0.1:9750", found(), 2, nil),
		"fleet.txt":    New("127.0.0.1:9750", fleet(), 1, nil),
		"nothing.txt":  New("127.0.0.1:9750", nothing(), 0, nil),
		"unknown.txt":  New("run.prom", engine.Result{At: at, Window: time.Minute}, 0, nil),
		"windows.txt":  New("127.0.0.1:9750", nothing(), 0, nil).WithWindows(windows()),
		"warnings.txt": New("http://prom:9090", nothing(), 0, []string{"results truncated due to limit"}),
	} {
		var out bytes.Buffer
		if err := r.Text(&out, false); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
		for line := range strings.Lines(out.String()) {
			query := strings.HasPrefix(line, "       ")
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > columns && !query {
				t.Errorf("%s: a line of prose has %d columns: %s", name, n, line)
			}
		}
	}
}

func TestNothingIsClaimedWhileNoRuleHasJudged(t *testing.T) {
	unmeasured, noData := "none of the signals is measured", "no workload has data for this rule"
	for _, c := range []struct {
		skipped []engine.Skip
		want    string
	}{
		{nil, "Not known: no rule has judged 3 workloads over 30 s."},
		{[]engine.Skip{{Rule: "a", Reason: noData}, {Rule: "b", Reason: unmeasured}, {Rule: "c", Reason: unmeasured}},
			"Not known: no rule has judged 3 workloads over 30 s (" + unmeasured + ")."},
		{[]engine.Skip{{Rule: "a", Reason: unmeasured}, {Rule: "b", Reason: noData}},
			"Not known: no rule has judged 3 workloads over 30 s (" + noData + ")."},
	} {
		r := New("x", engine.Result{At: at, Window: 30 * time.Second, Workloads: 3, Skipped: c.skipped}, 0, nil)
		if got := r.verdictText(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestColourOnlyAddsEscapes(t *testing.T) {
	r := New("x", found(), 0, nil)
	var plain, coloured bytes.Buffer
	if err := r.Text(&plain, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Text(&coloured, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(coloured.String(), "\x1b[1;31mhigh\x1b[0m") {
		t.Errorf("the severity has no colour:\n%s", coloured.String())
	}
	stripped := coloured.String()
	for _, style := range []string{bold, dim, red, yellow, cyan, "0"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+style+"m", "")
	}
	if stripped != plain.String() {
		t.Errorf("without colour got\n%s\nwant\n%s", stripped, plain.String())
	}
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	if err := New("127.0.0.1:9750", found(), 2, []string{"a|b"}).Markdown(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "found.md", out.String())
}

func TestHostileNamesReachNoTerminalAndNoPage(t *testing.T) {
	r := New("\x1b[2J", hostile(), 0, []string{"\x1b[2J"})
	evil := r.Findings[0].Workload
	r.Findings[0].Code = &codelink.Code{Event: codelink.CPU, Command: evil, Profile: evil, Change: evil, Functions: &codelink.Functions{Samples: 20, Top: []codelink.Function{{Name: evil}}}}
	var text, md bytes.Buffer
	if err := r.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{text.String(), md.String()} {
		if strings.ContainsRune(s, 0x1b) || len(s) > 100_000 {
			t.Errorf("%d bytes, an escape at %d", len(s), strings.IndexRune(s, 0x1b))
		}
	}
	if strings.Contains(md.String(), "<script>") && !strings.Contains(md.String(), "`` ") {
		t.Error("a tag reaches Markdown outside of code")
	}
	if strings.Contains(md.String(), "\n# ") {
		t.Error("a name makes a heading")
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	s, err := c.Compile("../../../docs/user/findings.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func TestJSONHasItsSchema(t *testing.T) {
	s := schema(t)
	for _, r := range []Report{
		New("a", found(), 0, []string{"w"}), New("a", counted(), 0, nil), New("a", found(), 1, nil), New("a", nothing(), 0, nil),
		New("a", fleet(), 1, nil),
		New("a", engine.Result{At: at, Window: time.Minute}, 0, nil),
		New("a", nothing(), 0, nil).WithWindows(windows()), New("a", nothing(), 0, nil).WithWindows(nil),
	} {
		var out bytes.Buffer
		if err := r.JSON(&out); err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, out.Bytes()); err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
		var again Report
		if err := json.Unmarshal(out.Bytes(), &again); err != nil || len(again.Findings) != len(r.Findings) {
			t.Errorf("read again: %v", err)
		}
	}
	for name, bad := range map[string]string{
		"another version": `{"schema":2,"source":"","at":"2026-03-01T12:00:00Z","window_seconds":1,"workloads":0,"findings":[],"left_out":0,"muted":0,"problems":[],"checked":[],"skipped":[],"warnings":[]}`,
		"null for a list": `{"schema":1,"source":"","at":"2026-03-01T12:00:00Z","window_seconds":1,"workloads":0,"findings":null,"left_out":0,"muted":0,"problems":[],"checked":[],"skipped":[],"warnings":[]}`,
		"no time":         `{"schema":1,"source":"","at":"noon","window_seconds":1,"workloads":0,"findings":[],"left_out":0,"muted":0,"problems":[],"checked":[],"skipped":[],"warnings":[]}`,
	} {
		if err := validate(t, s, []byte(bad)); err == nil {
			t.Errorf("%s is valid", name)
		}
	}
}

// The schema has exactly the members of the Go types.
func TestTheSchemaHasEveryMember(t *testing.T) {
	data, err := os.ReadFile("../../../docs/user/findings.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type object struct{ Properties map[string]any }
	var s struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of     any
		schema object
	}{
		{Report{}, s.object},
		{analysis.Finding{}, s.Defs["finding"]},
		{analysis.Evidence{}, s.Defs["evidence"]},
		{analysis.PerOperation{}, s.Defs["per_operation"]},
		{analysis.Operations{}, s.Defs["operations"]},
		{estimate.Span{}, s.Defs["span"]},
		{analysis.Threads{}, s.Defs["threads"]},
		{codelink.Code{}, s.Defs["code"]},
		{codelink.Functions{}, s.Defs["functions"]},
		{Cause{}, s.Defs["cause"]},
		{Member{}, s.Defs["member"]},
		{estimate.Gain{}, s.Defs["gain"]},
		{estimate.Saving{}, s.Defs["saving"]},
		{analysis.Silenced{}, s.Defs["silence"]},
		{analysis.Replaced{}, s.Defs["threshold"]},
		{analysis.Preceding{}, s.Defs["preceding"]},
		{analysis.Earlier{}, s.Defs["earlier"]},
		{query.Problem{}, s.Defs["problem"]},
		{engine.Skip{}, s.Defs["skip"]},
		{Box{}, s.Defs["box"]},
	} {
		var members []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(tt.of)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() {
				members = append(members, name)
			}
		}
		slices.Sort(members)
		if known := slices.Sorted(maps.Keys(tt.schema.Properties)); !slices.Equal(members, known) {
			t.Errorf("%T has %q and the schema %q", tt.of, members, known)
		}
	}
}

// JSON has no infinite values. Such evidence is omitted, and the report is still written.
func TestJSONOfWhatIsNoNumber(t *testing.T) {
	var out bytes.Buffer
	if err := New("a", hostile(), 0, nil).JSON(&out); err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema(t), out.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestValue(t *testing.T) {
	for _, tt := range []struct {
		v          float64
		unit, want string
	}{
		{0, "1/s", "0/s"}, {37_000, "1/s", "37k/s"}, {999.6, "1/s", "1k/s"}, {999.4, "1/s", "999/s"}, {1.234e9, "", "1.23G"},
		{94 << 20, "bytes", "94 MiB"}, {1 << 40, "bytes", "1 TiB"}, {1500, "bytes/s", "1.46 KiB/s"},
		{1.2e-6, "seconds", "1.2 µs"}, {0.25, "seconds", "250 ms"}, {90, "seconds", "90 s"}, {7200, "seconds", "2 h"}, {2.5e-9, "seconds", "2.5 ns"},
		{0.5, "ratio", "50 %"}, {0.00001, "ratio", "<0.01 %"}, {0.9999, "ratio", ">99.9 %"}, {0.0123, "ratio", "1.2 %"}, {19, "ratio", "1900 %"},
		{3, "threads", "3 threads"}, {-1500, "1/s", "-1.5k/s"}, {0.000123, "1", "0.000123"},
		{math.NaN(), "1/s", "not a number"}, {math.Inf(-1), "bytes", "not a number"},
	} {
		if got := Value(tt.v, tt.unit); got != tt.want {
			t.Errorf("%v %q is %q, want %q", tt.v, tt.unit, got, tt.want)
		}
	}
}

func TestGain(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      string
	}{
		{0.2, 0.45, "20 to 45 % more"}, {0, 0.12, "up to 12 % more"}, {0.5, 1.4, "1.5 to 2.4 times as much"},
		{0, 19, "up to 20 times as much"}, {0.001, 0.002, "under 1 % more"}, {0.2, 0.2, "about 20 % more"}, {0.02, 0.034, "2 to 3.4 % more"},
		{0.1, 0.31, "at least 10 % more"}, {0.2, 4, "at least 20 % more"}, // wider than threefold
	} {
		if got := gainText(&estimate.Gain{Low: tt.low, High: tt.high}); got != tt.want {
			t.Errorf("%v to %v is %q, want %q", tt.low, tt.high, got, tt.want)
		}
	}
	if got := gainText(nil); got != "" {
		t.Errorf("no gain is %q", got)
	}
}

func TestSaving(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      string
	}{
		{0.15, 0.4, "0.15 to 0.4 CPU cores saved"}, {0, 0.5, "up to 0.5 CPU cores saved"}, {0.02, 0.3, "at least 0.02 CPU cores saved"},
		{1.2, 1.2001, "about 1.2 CPU cores saved"}, {12, 30, "12 to 30 CPU cores saved"},
	} {
		if got := savingText(&estimate.Saving{Low: tt.low, High: tt.high}); got != tt.want {
			t.Errorf("%v to %v is %q, want %q", tt.low, tt.high, got, tt.want)
		}
	}
	f := analysis.Finding{Saving: &estimate.Saving{Low: 0.1, High: 0.2}}
	if got, want := worthInFull(f), "0.1 to 0.2 CPU cores saved. No measurement shows that the throughput would rise."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.Gain = &estimate.Gain{Low: 0.1, High: 0.2, Limit: "its busiest thread"}
	if got, want := worthInFull(f), "0.1 to 0.2 CPU cores saved; throughput 10 to 20 % more. The throughput is limited by its busiest thread."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAtLeast(t *testing.T) {
	for least, want := range map[analysis.Severity]int{analysis.Info: 3, analysis.Low: 2, analysis.Medium: 2, analysis.High: 1} {
		if got := AtLeast(found().Findings, least); got != want {
			t.Errorf("%d findings are %s or more, want %d", got, least, want)
		}
	}
}

// A report says how many findings are muted, and which thresholds the configuration has replaced.
func TestMutedAndReplaced(t *testing.T) {
	result := found()
	result.Findings[0].Thresholds = []analysis.Replaced{{Name: "calls", Value: 5000, Default: 1000, Unit: "1/s"}}
	result.Findings[1].Silence = &analysis.Silenced{ID: "a", Kind: analysis.Mute, Comment: "load test", EndsAt: at}
	all := New("a", result, 0, nil)
	r := all.Silenced(all.Findings, false)
	if len(r.Findings) != len(all.Findings)-1 || r.Muted != 1 || !strings.HasSuffix(r.verdictText(), " Muted: 1 finding.") {
		t.Errorf("%d findings, %d muted: %s", len(r.Findings), r.Muted, r.verdictText())
	}
	if listed := all.Silenced(all.Findings, true); len(listed.Findings) != len(all.Findings) || listed.Muted != 1 {
		t.Errorf("on request: %d findings, %d muted", len(listed.Findings), listed.Muted)
	}
	var text, markdown, data bytes.Buffer
	if err := errors.Join(r.Text(&text, false), r.Markdown(&markdown), all.Silenced(all.Findings, true).JSON(&data)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), markdown.String()} {
		if !strings.Contains(out, "Thresholds from the configuration") || !strings.Contains(out, "- calls: 5k/s instead of 1k/s") {
			t.Errorf("the threshold is not in\n%s", out)
		}
	}
	if err := validate(t, schema(t), data.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestWhatAddsIsSaid(t *testing.T) {
	r := found()
	r.Findings = r.Findings[:1]
	r.Findings[0].Adds, r.Findings[0].Overlaps = []string{"small-io"}, []string{"not-the-tee", "small-io"}
	r.Findings[0].Unconfirmed = true
	r.Findings[0].AbsentSince = at
	report := New("a", r, 0, nil)
	var text, md, out bytes.Buffer
	if err := errors.Join(report.Text(&text, false), report.Markdown(&md), report.JSON(&out)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- adds to the estimates of small-io", "- without the part that these findings count: small-io",
		"- may be the same time, and does not add to: not-the-tee", "not confirmed by a second look",
	} {
		if !strings.Contains(text.String(), want) || !strings.Contains(md.String(), want) {
			t.Errorf("%q is missing:\n%s\n%s", want, &text, &md)
		}
	}
	if err := validate(t, schema(t), out.Bytes()); err != nil {
		t.Error(err)
	}
}

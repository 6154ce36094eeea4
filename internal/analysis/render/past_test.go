// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/history"
)

// pastAnswer is a history of three findings: one is open, one has ended, of one the end is not known.
func pastAnswer() Past {
	low, high := 2.1e6, 2.5e6
	e := history.Entry{
		Number: 3, ID: "x", Rule: "needless-syscalls", Title: "calls that the runtime could answer", Workload: "redis-server", Instance: "node1:9750",
		Severity: analysis.High, Confidence: analysis.Likely, Began: at, Gain: &history.Range{Low: 0.3, High: 0.5}, Saving: &history.Range{Low: 0.2, High: 0.4},
		Evidence: []history.Figure{{Name: "calls", Value: 2.3e6, Unit: "1/s", Low: &low, High: &high, N: 60, Query: "q"}, {Name: "share", Value: 0.4, Unit: "ratio"}},
	}
	ended, unknown := e, e
	e.Preceded = []analysis.Preceding{{Kind: analysis.Restart, At: at.Add(-3 * time.Minute), Seconds: 180, What: "redis-server was restarted", Workload: "redis-server", Chance: 0.0028}}
	e.Earlier = []analysis.Earlier{{Ago: 86_400, Name: "calls", Value: 300, Unit: "1/s", Query: "q"}}
	ended.Number, ended.Began, ended.Ended, ended.Silence = 2, at.Add(-48*time.Hour), at.Add(-47*time.Hour), analysis.Mute
	less, more := -2.4e6, -2.2e6
	ended.Outcome = &history.Outcome{
		After:    []analysis.Preceding{{Kind: analysis.Deployment, At: at.Add(-47*time.Hour - 2*time.Minute), Seconds: 120, What: "redis-server began with another program file", Chance: 0.002}},
		Evidence: &history.Change{Name: "calls", Unit: "1/s", Before: 2.3e6, After: 300, NBefore: 10, NAfter: 9, Low: &less, High: &more, Query: "q"},
		Cores:    &history.Change{Name: "CPU time", Unit: "cores", Before: 1.2, After: 0.9, NBefore: 5, NAfter: 5},
	}
	unknown.Number, unknown.Began, unknown.Ended, unknown.EndUnknown = 1, at.Add(-96*time.Hour), at.Add(-96*time.Hour), true
	return Past{Source: "http://127.0.0.1:9750", Answer: history.Answer{
		Schema: 1, From: at.Add(-30 * 24 * time.Hour), To: at.Add(time.Hour), CompleteSince: at.Add(-20 * 24 * time.Hour), LeftOut: 4,
		Summaries: []history.Summary{
			{
				Rule: e.Rule, Title: e.Title, Workload: e.Workload, Instance: e.Instance, Severity: analysis.High, Times: 3, Total: 7200, Longest: 3600,
				LastBegan: at, Open: true, UnknownEnds: 1,
			},
			{Rule: "clock", Severity: analysis.Info, Times: 4, Total: 100, Longest: 50, LastBegan: at.Add(-time.Hour), LastEnded: at.Add(-time.Hour)},
		},
		Findings: []history.Entry{e, ended, unknown}, Warnings: []string{"a warning"},
	}}
}

func TestPast(t *testing.T) {
	for format, file := range map[string]string{"text": "past.txt", "markdown": "past.md"} {
		var out bytes.Buffer
		if err := pastAnswer().Write(&out, format, false); err != nil {
			t.Fatal(err)
		}
		golden(t, file, out.String())
	}
	var out bytes.Buffer
	if err := pastAnswer().Write(&out, "json", false); err != nil {
		t.Fatal(err)
	}
	var again history.Answer
	if err := json.Unmarshal(out.Bytes(), &again); err != nil || !reflect.DeepEqual(again, pastAnswer().Answer) {
		t.Errorf("read again %+v, %v", again, err)
	}
	out.Reset()
	if err := (Past{Source: "here"}).Write(&out, "text", false); err != nil || !strings.HasPrefix(out.String(), "No findings.\n") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// A server of somebody else may answer anything: no text moves the cursor or makes a link, and each format is written.
func TestPastOfAHostileServer(t *testing.T) {
	bad := "\x1b[2Jx\n# h\u202e[a](http://b)|<script>" + strings.Repeat("y", 10_000)
	p := pastAnswer()
	p.Source = bad
	p.Warnings = []string{bad}
	p.Summaries[0].Rule, p.Summaries[0].Workload, p.Summaries[0].Instance, p.Summaries[0].Severity = bad, bad, bad, analysis.Severity(bad)
	e := &p.Findings[0]
	e.Rule, e.Title, e.Workload, e.Instance, e.Silence = bad, bad, bad, bad, analysis.SilenceKind(bad)
	e.Severity, e.Confidence = analysis.Severity(bad), analysis.Confidence(bad)
	e.Evidence[0].Name, e.Evidence[0].Unit = bad, bad
	e.Preceded[0].What, e.Preceded[0].Seconds, e.Earlier[0].Name, e.Earlier[0].Unit = bad, 1e300, bad, bad
	p.Findings[1].Outcome.After[0].What, p.Findings[1].Outcome.Evidence.Name, p.Findings[1].Outcome.Evidence.Unit = bad, bad, bad
	p.Findings[2].Outcome = &history.Outcome{Gone: true}
	e.Began, e.Ended = time.Time{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, format := range PastFormats() {
		var out bytes.Buffer
		if err := p.Write(&out, format, false); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if format == "json" {
			continue // escaped by JSON
		}
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsGraphic(r) {
				t.Fatalf("%s has %U", format, r)
			}
		}
		if strings.Contains(out.String(), "\n# h") || format == "markdown" && strings.Contains(out.String(), "[a](http") && !strings.Contains(out.String(), "`") {
			t.Errorf("%s:\n%s", format, out.String())
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/server/pagequery"
)

// source answers every query with the given number of series. It refuses queries that contain "fails".
type source struct {
	series int
	err    error
}

func (s source) Instant(_ context.Context, _ string, at time.Time) ([]query.Sample, error) {
	var all []query.Sample
	for i := range s.series {
		all = append(all, query.Sample{Labels: map[string]string{"workload": fmt.Sprint(i)}, Time: at, Value: 1234567.25})
	}
	return all, s.err
}

func (s source) Range(_ context.Context, expr string, start, _ time.Time, step time.Duration) ([]query.Series, error) {
	if strings.Contains(expr, "teescope_cpu_seconds_total") {
		return nil, errors.New("too much was asked")
	}
	var all []query.Series
	for i := range s.series {
		all = append(all, query.Series{Labels: map[string]string{"workload": fmt.Sprint(i)}, Points: []query.Point{
			{Time: start, Value: float64(i)}, {Time: start.Add(2 * step), Value: 1234567.25},
		}})
	}
	return all, s.err
}

func options(s query.Source) Options {
	to := time.Unix(1_763_772_007, 0)
	return Options{
		Server: "<host>:9750", Version: "v1", Source: s, From: to.Add(-5 * time.Minute), To: to, Scrape: 5 * time.Second, Made: to,
		Findings: json.RawMessage(`{"schema":1}`),
		Page: fstest.MapFS{
			scriptFile: {Data: []byte(`let a = "</script>";`)},
			styleFile:  {Data: []byte(`a { color: red }`)},
		},
	}
}

// unpack reads the recording of a report.
func unpack(t *testing.T, file string) recording {
	t.Helper()
	found := regexp.MustCompile(`id="recording">([^<]*)</script>`).FindStringSubmatch(file)
	if found == nil {
		t.Fatal("no recording in", file)
	}
	packed, err := base64.StdEncoding.DecodeString(found[1])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		recording
		Answers []struct {
			Expr   string
			Points int
			Exact  bool
			From   float64
			Step   float64
			Series []struct {
				M map[string]string
				V []*float64
			}
			Error string
		} `json:"answers"`
	}
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Answers {
		b := answer{question: question{a.Expr, a.Points, a.Exact}, From: a.From, Step: a.Step, Error: a.Error}
		for _, s := range a.Series {
			one := series{Labels: s.M}
			for _, v := range s.V {
				if v == nil {
					one.Values = append(one.Values, math.NaN())
				} else {
					one.Values = append(one.Values, *v)
				}
			}
			b.Series = append(b.Series, one)
		}
		r.recording.Answers = append(r.recording.Answers, b)
	}
	return r.recording
}

func TestAReportHoldsAllAnswers(t *testing.T) {
	var out bytes.Buffer
	summary, err := Write(t.Context(), &out, options(source{series: maxSeries + 2}))
	if err != nil {
		t.Fatal(err)
	}
	file := out.String()
	for _, want := range []string{
		`default-src 'none'; script-src 'sha256-`, `<title>teescope report: &lt;host&gt;:9750`, `let a = "<\/script>";`, `a { color: red }`,
	} {
		if !strings.Contains(file, want) {
			t.Errorf("the file has no %s", want)
		}
	}
	if strings.Contains(file, "http://") || strings.Contains(file, "src=") {
		t.Error("the file makes a request")
	}
	r := unpack(t, file)
	if len(r.Answers) < 100 || len(r.Answers) != summary.Questions {
		t.Fatalf("%d answers, want %d", len(r.Answers), summary.Questions)
	}
	charts, exact, failed := 0, 0, 0
	for _, a := range r.Answers {
		switch {
		case a.Error != "":
			failed++
		case len(a.Series) != maxSeries:
			t.Fatalf("%s: %d series", a.Expr, len(a.Series))
		case a.Points == 0:
			if v := a.Series[0].Values; len(v) != 1 || v[0] != 1234567.25 {
				t.Fatalf("%s: %v", a.Expr, v)
			}
		default:
			charts++
			// The points are from 1763771707 in steps of 5, 10 or 300 seconds. The greatest series is first and has a
			// gap.
			v, last := a.Series[0].Values, 1234570.0
			if a.Exact { // timestamps
				exact, last = exact+1, 1234567.25
			}
			if len(v) != 3 || v[0] != maxSeries+1 || !math.IsNaN(v[1]) || v[2] != last {
				t.Fatalf("%s: %v", a.Expr, v)
			}
			if math.Mod(a.From, a.Step) != 0 || a.From > float64(r.From) || a.From+a.Step <= float64(r.From) {
				t.Errorf("%s starts at %v in steps of %v, the report at %d", a.Expr, a.From, a.Step, r.From)
			}
		}
	}
	if charts == 0 || exact != 6 || failed == 0 {
		t.Errorf("%d charts, %d of them of moments, %d failures; want 6 of moments", charts, exact, failed)
	}
	if left := strings.Join(r.LeftOut, "\n"); !strings.Contains(left, "too much was asked") || !strings.Contains(left, "the 2 smallest of its 302 series") {
		t.Errorf("left out: %s", left)
	}
}

func TestAReportOfNothingIsAnError(t *testing.T) {
	var none *NoDataError
	if _, err := Write(t.Context(), &bytes.Buffer{}, options(source{})); !errors.As(err, &none) || !strings.Contains(err.Error(), "--window") {
		t.Errorf("%v", err)
	}
	refused := errors.New("refused")
	if _, err := Write(t.Context(), &bytes.Buffer{}, options(source{err: refused})); err == nil {
		t.Error("a server that refuses everything has a report")
	}
}

func TestEveryQuestionCanBeFilled(t *testing.T) {
	var all []question
	if err := json.Unmarshal(questions, &all); err != nil {
		t.Fatal(err)
	}
	for _, q := range all {
		if _, err := (pagequery.Filling{Step: 5, Scrape: 5}).Fill(q.Expr); err != nil {
			t.Error(err)
		}
	}
}

// TestTheEndIsAPoint: where points are further apart than scrapes, the last point of the grid is beyond the report's
// end. A server that started less than one step ago has only the point at the end.
func TestTheEndIsAPoint(t *testing.T) {
	o := options(source{series: 2})
	o.From = o.To.Add(-7 * 24 * time.Hour)
	for _, tt := range []struct {
		scrape time.Duration
		ends   int
	}{{5 * time.Second, 1}, {time.Hour, 0}} {
		o.Scrape = tt.scrape
		a, _, err := ask(t.Context(), o, question{Expr: "$rate(a{$workloads}[$window])", Points: 240})
		if err != nil || len(a.Series) != 2 || a.Step != 3600 {
			t.Fatalf("%+v, %v", a, err)
		}
		for _, s := range a.Series {
			if len(s.End) != tt.ends || tt.ends == 1 && s.End[0] != 1234567.25 {
				t.Errorf("scraped every %s: the end is %v, want %d values", tt.scrape, s.End, tt.ends)
			}
		}
	}
	alone := withEnds(nil, []query.Sample{{Labels: map[string]string{"a": "b"}, Value: 1}})
	if len(alone) != 1 || len(alone[0].Values) != 0 || alone[0].End[0] != 1 {
		t.Errorf("a series of the end alone: %+v", alone)
	}
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/server/pagequery"
)

const (
	// maxSeries is the maximum number of series of one answer. Those with the greatest values are kept.
	maxSeries = 300
	// maxValues is the maximum number of values of a report. A value takes up to 4.5 bytes of the file.
	maxValues = 2_500_000
	// concurrency is the number of concurrent queries.
	concurrency = 4
)

// question is a query of the page. With points, it covers the report's time range with at most that many points.
// Without points, it is for the end of the range.
type question struct {
	Expr   string `json:"expr"` // with placeholders
	Points int    `json:"points"`
	Exact  bool   `json:"exact,omitempty"` // its values are timestamps, which need all digits
}

// answer is a query with its series on a grid of times.
type answer struct {
	question
	From   float64  `json:"from"` // Unix seconds of the first value
	Step   float64  `json:"step"` // seconds between two values
	Series []series `json:"series"`
	Error  string   `json:"error,omitempty"`
}

// series is one series of an answer. Values for charts are rounded, unless they must be exact.
type series struct {
	Labels map[string]string
	Values values
	End    values // at the report's end, when the end is beyond the grid's last point
	exact  bool
}

// values are the values of a series. A missing value is NaN.
type values []float64

// digits is the number of significant digits of a chart's value.
const digits = 6

// MarshalJSON implements json.Marshaler.
func (s series) MarshalJSON() ([]byte, error) {
	precision := digits
	if s.exact || len(s.Values) == 1 {
		precision = -1
	}
	written := struct {
		Labels map[string]string `json:"m"`
		Values json.RawMessage   `json:"v"`
		End    json.RawMessage   `json:"e,omitempty"`
	}{Labels: s.Labels, Values: s.Values.text(precision)}
	if s.End != nil {
		written.End = s.End.text(-1)
	}
	return json.Marshal(written)
}

func (v values) text(precision int) []byte {
	out := []byte{'['}
	for i, f := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, f, 'g', precision, 64)
		}
	}
	return append(out, ']')
}

// record runs all queries. The answers have the order of the queries. The texts describe what is missing.
func record(ctx context.Context, o Options, all []question) ([]answer, []string, error) {
	answers, left := make([]answer, len(all)), make([]int, len(all))
	errs := make([]error, len(all))
	work := make(chan int)
	var group sync.WaitGroup
	for range concurrency {
		group.Go(func() {
			for i := range work {
				answers[i], left[i], errs[i] = ask(ctx, o, all[i])
			}
		})
	}
	for i := range all {
		work <- i
	}
	close(work)
	group.Wait()

	var leftOut []string
	total, failed := 0, 0
	for i := range answers {
		a := &answers[i]
		if errs[i] != nil {
			if ctx.Err() != nil {
				return nil, nil, errs[i]
			}
			failed++
			a.Error = errs[i].Error()
			leftOut = append(leftOut, fmt.Sprintf("%s: %v", a.Expr, errs[i]))
		}
		if left[i] > 0 {
			leftOut = append(leftOut, fmt.Sprintf("%s: the %d smallest of its %d series", a.Expr, left[i], left[i]+len(a.Series)))
		}
		here := 0
		for _, s := range a.Series {
			here += len(s.Values)
		}
		if total += here; total > maxValues {
			total -= here
			a.Series, a.Error = nil, "The report is full."
			leftOut = append(leftOut, a.Expr+": the report is full; use --workload or a shorter --window")
		}
	}
	if failed == len(all) && failed > 0 {
		return nil, nil, errs[0]
	}
	return answers, leftOut, nil
}

// ask runs one query, and returns how many series it has dropped.
func ask(ctx context.Context, o Options, q question) (answer, int, error) {
	a := answer{question: q, From: float64(o.To.Unix()), Step: pagequery.Minute()}
	f := pagequery.Filling{Workloads: o.Workloads, Step: pagequery.Minute(), Scrape: o.Scrape.Seconds()}
	if !o.Started.IsZero() {
		age := math.Max(0, o.To.Sub(o.Started).Seconds())
		f.Age = &age
	}
	if q.Points > 0 {
		f.Step = pagequery.StepFor(o.To.Sub(o.From).Seconds(), f.Scrape, q.Points)
		a.Step, a.From = f.Step, math.Floor(float64(o.From.Unix())/f.Step)*f.Step
	}
	query, err := f.Fill(q.Expr)
	if err != nil {
		return a, 0, err
	}
	if q.Points == 0 {
		samples, err := o.Source.Instant(ctx, query, o.To)
		if err != nil {
			return a, 0, err
		}
		for _, s := range samples {
			a.Series = append(a.Series, series{Labels: s.Labels, Values: values{s.Value}})
		}
	} else {
		end := math.Ceil(float64(o.To.Unix())/f.Step) * f.Step
		found, err := o.Source.Range(ctx, query, seconds(a.From), seconds(end), time.Duration(f.Step)*time.Second)
		if err != nil {
			return a, 0, err
		}
		for _, s := range found {
			a.Series = append(a.Series, series{Labels: s.Labels, Values: onGrid(s.Points, a.From, end, f.Step), exact: q.Exact})
		}
		if f.Step > f.Scrape && end > float64(o.To.Unix()) { // as the page: web/src/panels/frames.ts
			ends, err := o.Source.Instant(ctx, query, o.To)
			if err != nil {
				return a, 0, err
			}
			a.Series = withEnds(a.Series, ends)
		}
	}
	left := max(0, len(a.Series)-maxSeries)
	if left > 0 {
		slices.SortStableFunc(a.Series, func(x, y series) int { return cmp.Compare(y.Values.weight(), x.Values.weight()) })
		a.Series = a.Series[:maxSeries]
	}
	return a, left, nil
}

// withEnds adds the value at the end to each series. A series that exists only at the end has no other value.
func withEnds(all []series, ends []query.Sample) []series {
	place := map[string]int{}
	for i, s := range all {
		place[fmt.Sprint(s.Labels)] = i
	}
	for _, e := range ends {
		i, known := place[fmt.Sprint(e.Labels)]
		if !known {
			i, all = len(all), append(all, series{Labels: e.Labels, Values: values{}})
		}
		all[i].End = values{e.Value}
	}
	return all
}

func seconds(s float64) time.Time { return time.Unix(int64(s), 0) }

// onGrid puts points on a grid, up to the last existing one.
func onGrid(points []query.Point, from, end, step float64) values {
	grid := make(values, int(math.Round((end-from)/step))+1)
	for i := range grid {
		grid[i] = math.NaN()
	}
	last := 0
	for _, p := range points {
		i := int(math.Round((float64(p.Time.UnixMilli())/1000 - from) / step))
		if i >= 0 && i < len(grid) {
			grid[i], last = p.Value, max(last, i)
		}
	}
	return grid[:last+1]
}

func (v values) weight() float64 {
	sum := 0.0
	for _, f := range v {
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			sum += math.Abs(f)
		}
	}
	return sum
}

var _ json.Marshaler = series{}

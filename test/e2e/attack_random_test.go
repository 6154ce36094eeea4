// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var randomFor = flag.Duration("queries", 5*time.Second, "how long random queries are sent")

// promql writes random queries. Every query is valid by the grammar, and most have the right types.
type promql struct{ *rand.Rand }

func pick[T any](q promql, of ...T) T { return of[q.IntN(len(of))] }

func (q promql) label() string {
	return pick(q, "i", "group", "text", "job", "instance", "le", "a", "b", "__name__")
}

func (q promql) labels() string {
	all := make([]string, q.IntN(4))
	for i := range all {
		all[i] = q.label()
	}
	return "(" + strings.Join(all, ",") + ")"
}

func (q promql) text() string {
	return strconv.Quote(pick(q, "", "a", "-", "(.*)", "(.)(.*)", "$1$1", "$1-$2", strings.Repeat("y", q.IntN(2000)),
		strings.Repeat("$1", q.IntN(300)), "[a-z]+", ".+", ".*5", strings.Repeat("(a|b)?", q.IntN(50)), fmt.Sprintf("(x|y){%d}", q.IntN(1000))))
}

func (q promql) duration() string {
	return pick(q, "1ms", "7ms", "100ms", "1s", "5s", "1m", "5m", "1h", "1d", "10d", "52w", "10y",
		strconv.Itoa(1+q.IntN(100))+pick(q, "ms", "s", "m", "h", "d"), fmt.Sprint(q.Float64()*10))
}

func (q promql) number() string {
	return pick(q, "0", "1", "-1", "0.5", "3", "1e9", "1e18", "NaN", "Inf", "-Inf", strconv.Itoa(q.IntN(3000)))
}

func (q promql) modifiers() string {
	s := ""
	if q.IntN(6) == 0 {
		s += " offset " + pick(q, "", "-") + q.duration()
	}
	if q.IntN(6) == 0 {
		s += " @ " + pick(q, "start()", "end()", "0", strconv.FormatInt(time.Now().Unix(), 10))
	}
	return s
}

func (q promql) selector() string {
	s := pick(q, "attack", "attack", "up", "scrape_duration_seconds", `{__name__=~".+"}`, `{job="attack"}`, `{__name__!=""}`)
	if !strings.HasPrefix(s, "{") && q.IntN(2) == 0 {
		s += "{" + q.label() + pick(q, "=", "!=", "=~", "!~") + q.text() + "}"
	}
	return s
}

func (q promql) matrix(depth int) string {
	if depth <= 0 || q.IntN(3) == 0 {
		return q.selector() + "[" + q.duration() + "]" + q.modifiers()
	}
	return "(" + q.vector(depth-1) + ")[" + q.duration() + ":" + pick(q, "", q.duration()) + "]" + q.modifiers()
}

func (q promql) scalar(depth int) string {
	if depth <= 0 || q.IntN(2) == 0 {
		return q.number()
	}
	return pick(q, "time()", "pi()", "scalar("+q.vector(depth-1)+")", "("+q.scalar(depth-1)+pick(q, "+", "*", "^", "%")+q.scalar(depth-1)+")")
}

func (q promql) vector(depth int) string {
	if depth <= 0 {
		return q.selector() + q.modifiers()
	}
	depth--
	switch q.IntN(12) {
	case 0:
		return q.selector() + q.modifiers()
	case 1, 2:
		return q.aggregation(depth)
	case 3, 4:
		return q.binary(depth)
	case 5:
		return pick(q, "abs", "ceil", "exp", "sort", "sort_desc", "timestamp", "absent", "day_of_month", "deg", "sgn", "-") + "(" + q.vector(depth) + ")"
	case 6, 7:
		return pick(q, "rate", "increase", "delta", "deriv", "changes", "resets", "avg_over_time", "max_over_time", "count_over_time", "stddev_over_time",
			"last_over_time", "present_over_time", "absent_over_time") + "(" + q.matrix(depth) + ")"
	case 8:
		return pick(q, "quantile_over_time("+q.scalar(depth)+","+q.matrix(depth)+")", "predict_linear("+q.matrix(depth)+","+q.scalar(depth)+")",
			"histogram_quantile("+q.scalar(depth)+","+q.vector(depth)+")", "clamp("+q.vector(depth)+","+q.scalar(depth)+","+q.scalar(depth)+")",
			"round("+q.vector(depth)+","+q.scalar(depth)+")")
	case 9:
		s := "label_join(" + q.vector(depth) + `,"` + q.label() + `",` + q.text()
		for range 1 + q.IntN(30) {
			s += `,"` + q.label() + `"`
		}
		return s + ")"
	case 10:
		return fmt.Sprintf("label_replace(%s,%q,%s,%q,%s)", q.vector(depth), q.label(), q.text(), q.label(), q.text())
	}
	return "vector(" + q.scalar(depth) + ")"
}

func (q promql) aggregation(depth int) string {
	by := pick(q, "", " by "+q.labels(), " without "+q.labels(), " by (i,group,text,job,instance,__name__)", " without ()")
	switch q.IntN(4) {
	case 0:
		return pick(q, "topk", "bottomk", "quantile") + by + "(" + q.scalar(depth) + "," + q.vector(depth) + ")"
	case 1:
		return "count_values" + by + `("` + q.label() + `",` + q.vector(depth) + ")"
	}
	return pick(q, "sum", "min", "max", "avg", "count", "stddev", "group") + by + "(" + q.vector(depth) + ")"
}

func (q promql) binary(depth int) string {
	op := pick(q, "+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", "> bool", "and", "or", "unless", "atan2")
	right := q.vector(depth)
	switch {
	case op == "and" || op == "or" || op == "unless":
		op += pick(q, "", " on "+q.labels(), " ignoring "+q.labels())
	case q.IntN(3) == 0:
		right = q.scalar(depth)
	default:
		op += pick(q, "", " on "+q.labels(), " on (i,job) group_left "+q.labels(), " ignoring (a) group_right (b)", " ignoring "+q.labels())
	}
	return "(" + q.vector(depth) + ") " + op + " (" + right + ")"
}

// request returns the path of a random request.
func (q promql) request() string {
	now := time.Now().Unix()
	v := url.Values{}
	switch q.IntN(10) {
	case 0:
		for range 1 + q.IntN(100) {
			v.Add("match[]", q.selector())
		}
		return pick(q, "/api/v1/series?", "/api/v1/labels?", "/api/v1/label/text/values?") + v.Encode()
	case 1, 2, 3, 4:
		v.Set("query", q.vector(q.IntN(6)))
		steps := int64(1 + q.IntN(10_999))
		step := pick(q, int64(1), int64(1), 5, 120, int64(1+q.IntN(3000)))
		end := now + pick(q, 0, 10, step, int64(q.IntN(10_000)))
		v.Set("start", strconv.FormatInt(end-steps*step, 10))
		v.Set("end", strconv.FormatInt(end, 10))
		v.Set("step", strconv.FormatInt(step, 10))
		v.Set("timeout", "2s")
		return "/api/v1/query_range?" + v.Encode()
	}
	v.Set("query", pick(q, q.vector(q.IntN(7)), q.matrix(q.IntN(6)), q.scalar(3)))
	v.Set("timeout", "2s")
	return "/api/v1/query?" + v.Encode()
}

// history has the last requests, to name those that ended a process.
type history struct {
	mu    sync.Mutex
	last  map[int]string // by worker
	codes map[int]int    // answers by status
	wrong []string
}

func (h *history) send(ctx context.Context, worker int, base, path string) {
	h.mu.Lock()
	h.last[worker] = path
	h.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // the time is over, or the process has ended, which the test finds
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.codes[resp.StatusCode]++
	if resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable || strings.Contains(string(text), "unexpected error") {
		h.wrong = append(h.wrong, fmt.Sprintf("%s: %s %.300s", path, resp.Status, text))
	}
}

// stillAnswers waits until a query of all series is answered.
func (s *teescope) stillAnswers(t *testing.T) {
	t.Helper()
	eventually(t, testLimit, "an answer afterwards", func() error {
		got, err := query("http://"+s.addr, `count(attack)`, time.Now())
		if err == nil && got["{}"] != attackSeries {
			err = fmt.Errorf("count(attack) is %v", got)
		}
		return err
	})
}

// Any valid query leaves the process alive and below its limit of memory.
func TestRandomQueriesLeaveTheProcessAlive(t *testing.T) {
	s := attacked(t, "server", "--targets", freeAddr(t))
	processes := s.group()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, for %s", seed, *randomFor)
	h := &history{last: map[int]string{}, codes: map[int]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), *randomFor)
	defer cancel()
	var all sync.WaitGroup
	for worker := range 3 {
		q := promql{rand.New(rand.NewPCG(seed, uint64(worker)))}
		all.Go(func() {
			for ctx.Err() == nil {
				if path := q.request(); len(path) < 60_000 {
					h.send(ctx, worker, "http://"+s.addr, path)
				}
			}
		})
	}
	highest := 0.0
	for ended := false; !ended; {
		select {
		case <-s.done:
			h.mu.Lock()
			t.Fatalf("one of these ended the process: %v\n%.3000s", h.last, s.log.String())
		case <-ctx.Done():
			ended = true
		case <-time.After(100 * time.Millisecond):
			if peak := s.peak(t); peak > highest+16*mib {
				h.mu.Lock()
				t.Logf("%.0f MiB: %.1500s", peak/mib, fmt.Sprint(h.last))
				h.mu.Unlock()
				highest = peak
			}
		}
	}
	all.Wait()
	if now := s.group(); !slices.Equal(now, processes) {
		t.Errorf("the processes were %v and are %v\n%.3000s", processes, now, s.log.String())
	}
	t.Logf("answers by status: %v; at most %.0f MiB were in use", h.codes, s.peak(t)/mib)
	for _, wrong := range h.wrong {
		t.Error(wrong)
	}
	s.stillAnswers(t)
	if peak := s.peak(t); peak > attackLimit {
		t.Errorf("%.0f MiB were in use, and the limit is %d MiB", peak/mib, attackLimit/mib)
	}
	if h.codes[http.StatusOK] == 0 && h.codes[http.StatusBadRequest] > 100 {
		t.Error("no query was answered")
	}
}

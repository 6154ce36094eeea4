// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowQuery takes many seconds and little memory. At each of 1,500 steps it sorts 1,200 values of 200 series. It
// queries the coming minutes, which have the newest samples.
func slowQuery() string {
	now := float64(time.Now().UnixMilli()) / 1000
	at := func(seconds float64) string { return strconv.FormatFloat(now+seconds, 'f', 3, 64) }
	return "/api/v1/query_range?" + url.Values{
		"query": {`quantile_over_time(0.5, (slow * 1)[2m:100ms])`},
		"start": {at(120)}, "end": {at(270)}, "step": {"0.1"},
	}.Encode()
}

// refusals collects the answers to many clients.
type refusals struct {
	mu       sync.Mutex
	statuses map[int]int
	wrong    []string // refusals without advice
}

// ask sends one query, and gives up when ctx ends.
func (r *refusals) ask(ctx context.Context, address string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it gave up
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses[resp.StatusCode]++
	if resp.StatusCode == http.StatusOK {
		return
	}
	var said struct{ ErrorType, Error string }
	if err := json.Unmarshal(text, &said); err != nil || said.ErrorType != "timeout" || resp.Header.Get("Retry-After") == "" ||
		!strings.Contains(said.Error, "try again in a moment, or query a shorter time range") {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %v: %s", resp.Status, resp.Header, text))
	}
}

// There are more slow queries than can be answered. The server refuses the excess at once with advice, and the health
// check, the exposition and the scrapes continue.
func TestMoreSlowQueriesThanCanBeAnswered(t *testing.T) {
	const requests, running, waiting = 100, 4, 64
	target := httptest.NewServer(body(func(w io.Writer) {
		for i := range 200 {
			fmt.Fprintf(w, "slow{i=\"%d\"} %d\n", i, i)
		}
	}))
	defer target.Close()
	s := start(t, "up", "--data-dir", t.TempDir(), "--interval", "2s", "--scrape", "slow="+target.URL)
	base := "http://" + s.addr
	eventually(t, testLimit, "the series of the query", func() error {
		got, err := query(base, `count(slow)`, time.Now())
		if err == nil && got["{}"] != 200 {
			err = fmt.Errorf("count(slow) is %v", got)
		}
		return err
	})
	address := base + slowQuery()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := &refusals{statuses: map[int]int{}}
	var all sync.WaitGroup
	for range requests {
		all.Go(func() { answers.ask(ctx, address) })
	}
	eventually(t, testLimit, "the excess queries to be refused", func() error {
		answers.mu.Lock()
		defer answers.mu.Unlock()
		if n := answers.statuses[http.StatusServiceUnavailable]; n < requests-running-waiting {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	// While the queries run, the others are answered. So the load ends after these answers, and not before the next scrapes.
	loaded := time.Now()
	for rounds := 0; rounds < 5 || time.Since(loaded) < 5*time.Second; rounds++ {
		if _, err := get(base + "/-/healthy"); err != nil {
			t.Error(err)
		}
		s.answers(t)
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	all.Wait()
	t.Logf("answers by status: %v", answers.statuses)
	if n := len(answers.wrong); n > 0 {
		t.Errorf("%d refusals have no advice, the first is %s", n, answers.wrong[0])
	}
	if n := answers.statuses[http.StatusServiceUnavailable]; n > requests-running {
		t.Errorf("%d of %d were refused", n, requests)
	}
	if n := answers.statuses[http.StatusOK]; n > 0 {
		t.Errorf("%d slow queries were answered, so they were not a load", n)
	}
	// After the load has ended the server answers again. The scrapes under load were not left out, and did not all fail: one that takes
	// longer than its interval may.
	expr := fmt.Sprintf(`max_over_time(up{job="teescope"}[%[1]ds]) and count_over_time(up{job="teescope"}[%[1]ds]) >= 2`, int(time.Since(loaded).Seconds()))
	asked := time.Now()
	var got vector
	eventually(t, testLimit, "an answer after the load", func() (err error) { // the queries that were given up end first
		got, err = query(base, expr, asked)
		return err
	})
	if len(got) != 1 {
		t.Errorf("%s: %v", expr, got)
	}
	for _, up := range got {
		wantExactly(t, "up", up, 1)
	}
}

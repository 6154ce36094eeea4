// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/logtest"
)

// record appends the counter requests_total, which grows by one per minute, over a period.
func record(t *testing.T, db *tsdb.DB, from, to time.Time) {
	t.Helper()
	a := db.Appender(t.Context())
	var ref storage.SeriesRef
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		var err error
		ref, err = a.Append(ref, labels.FromStrings("__name__", "requests_total"), at.UnixMilli(), at.Sub(from).Minutes())
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Commit(); err != nil {
		t.Fatal(err)
	}
}

// block writes the part of the head before a time to a block.
func block(t *testing.T, db *tsdb.DB, until time.Time) {
	t.Helper()
	if err := db.CompactHead(tsdb.NewRangeHead(db.Head(), db.Head().MinTime(), until.UnixMilli()-1)); err != nil {
		t.Fatal(err)
	}
}

// answer runs a query that returns one number.
func answer(t *testing.T, s *Server, at time.Time, query string) string {
	t.Helper()
	var data struct{ Result []struct{ Value [2]any } }
	path := fmt.Sprintf("/query?time=%d&query=%s", at.Unix(), url.QueryEscape(query))
	if code := get(t, s.Handler(), path, &data); code != http.StatusOK || len(data.Result) != 1 {
		t.Fatalf("%s: status %d, %v", query, code, data.Result)
	}
	return fmt.Sprint(data.Result[0].Value[1])
}

// A database with samples ahead of the clock: these are removed, and older ones stay, in any kind of file.
func TestSamplesAheadOfTheClockGo(t *testing.T) {
	const past, future = 180, 120 // minutes
	for name, blocks := range map[string][]time.Duration{
		"in the head":                        nil,
		"in the head, older ones in a block": {-time.Hour},
		"in a block with older ones":         {time.Hour},
		"in blocks of their own":             {0, time.Hour, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logtest.Log
			o := options(t.TempDir(), &log)
			s := New(o)
			if err := s.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			record(t, s.db, now.Add(-past*time.Minute), now.Add(future*time.Minute))
			for _, until := range blocks {
				block(t, s.db, now.Add(until))
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			s = New(o)
			if err := s.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "the clock was set back: samples in the future are removed") {
				t.Errorf("it is not logged:\n%s", log.String())
			}
			// The counter starts again, as after a restart of the machine.
			again := time.Now()
			record(t, s.db, again, again.Add(10*time.Minute))
			for opened := range 2 {
				if opened > 0 {
					s = New(o)
					if err := s.Init(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for _, q := range []struct {
					at          time.Duration
					query, want string
				}{
					{-time.Second, "count_over_time(requests_total[10h])", fmt.Sprint(past)},
					{-30 * time.Second, "round(increase(requests_total[1h]), 0.1)", "60"},
					{9*time.Minute + 30*time.Second, "round(increase(requests_total[5m]), 0.1)", "5"},
					{24 * time.Hour, "resets(requests_total[2d])", "1"},
					{24 * time.Hour, "count_over_time(requests_total[2d])", fmt.Sprint(past + 1 + 10)},
				} {
					if got := answer(t, s, now.Add(q.at), q.query); got != q.want {
						t.Errorf("opened %d times again: %s = %s, want %s", opened+1, q.query, got, q.want)
					}
				}
				if err := s.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/profiletest"
	"github.com/teescope/teescope/internal/run/profile/read"
	"github.com/teescope/teescope/internal/run/profile/write"
)

var epoch = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// minute is a profile of one minute: the workload web spends 3 n ns in work, and db n ns in scan.
func minute(t *testing.T, at time.Time, n int64) []byte {
	t.Helper()
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	for function, of := range map[string]struct {
		workload string
		by       int64
	}{"work": {"web", 3}, "scan": {"db", 1}} {
		f, err := b.Frame(profile.Frame{Function: function, Library: "/bin/" + of.workload})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Add([]uint32{f}, []profile.Label{{Key: profile.Workload, Value: of.workload}}, 1, of.by*n); err != nil {
			t.Fatal(err)
		}
	}
	return encoded(t, b, at)
}

// encoded writes a profile of one minute.
func encoded(t *testing.T, b *profile.Builder, at time.Time) []byte {
	t.Helper()
	return written(t, b.Profile(), at)
}

func written(t *testing.T, p *profile.Profile, at time.Time) []byte {
	t.Helper()
	p.Began, p.Lasted = at, time.Minute
	return profiletest.Pprof(t, p)
}

// filled is a store with profiles of the first minutes of epoch, of which the nth has 10^n ns.
func filled(t *testing.T, minutes int, change func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "profiles"), RetentionTime: time.Hour, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	s := New(o)
	n := int64(1)
	for i := range minutes {
		if err := s.add(minute(t, epoch.Add(time.Duration(i)*time.Minute), n)); err != nil {
			t.Fatal(err)
		}
		n *= 10
	}
	return s
}

func get(s *Store, query string) (int, string, http.Header) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, query, nil))
	return w.Code, w.Body.String(), w.Header()
}

// at is a time of a query.
func at(minutes float64) string { return fmt.Sprintf("%.0f", float64(epoch.Unix())+60*minutes) }

// A query adds up the profiles that share time with it, and the samples that have all its labels.
func TestProfilesAreAddedUpByTimeAndLabels(t *testing.T) {
	s := filled(t, 3, nil)
	for query, want := range map[string]string{
		"start=" + at(0) + "&end=" + at(3):                                             "scan 111\nwork 333\n",
		"start=" + at(1) + "&end=" + at(2):                                             "scan 10\nwork 30\n",
		"start=" + at(1.5) + "&end=" + at(2.5):                                         "scan 110\nwork 330\n",
		"start=" + at(0) + "&end=" + at(3) + "&workload=web":                           "work 333\n",
		"start=" + at(0) + "&end=" + at(3) + "&label=workload:db":                      "scan 111\n",
		"start=" + at(0) + "&end=" + at(1) + "&workload=web&label=workload:db":         "no profile has a sample",
		"start=" + at(5) + "&end=" + at(6):                                             "no profile has a sample",
		"start=" + at(2) + "&end=" + at(1):                                             "start is not before end",
		"start=noon":                                                                   "is not a time",
		"start=" + at(0) + "&end=" + at(3) + "&label=x":                                "use KEY:VALUE",
		"start=" + at(0) + "&end=" + at(3) + strings.Repeat("&label=a:b", maxLabels+1): "more than 16 labels",
	} {
		status, body, _ := get(s, "/api/profiles/merged?format=folded&"+query)
		if ok := strings.HasSuffix(want, "\n"); ok && (status != 200 || body != want) || !ok && (status == 200 || !strings.Contains(body, want)) {
			t.Errorf("%s: %d %q, want %q", query, status, body, want)
		}
	}
	if status, body, _ := get(s, "/api/profiles/merged?format=doc"); status != 400 {
		t.Errorf("an unknown format: %d %s", status, body)
	}
	status, body, header := get(s, "/api/profiles/merged?format=html&start="+at(0)+"&end="+at(3))
	if status != 200 || !strings.Contains(body, "<svg") || header.Get("Content-Security-Policy") != write.Policy() || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		t.Errorf("the page: %d %v", status, header)
	}
	var kept keptProfiles
	_, body, _ = get(s, "/api/profiles?start="+at(0.5)+"&end="+at(2))
	if err := json.Unmarshal([]byte(body), &kept); err != nil || kept.Profiles != 2 || !kept.First.Equal(epoch) || !kept.Last.Equal(epoch.Add(2*time.Minute)) {
		t.Errorf("%s, %v", body, err)
	}
}

// With times=true, an answer has the times of samples. Without, it adds them up.
func TestTimesAreKeptOnDemand(t *testing.T) {
	s := filled(t, 0, nil)
	b := profile.NewBuilder("pprof", []profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, profile.DefaultLimits())
	f, err := b.Frame(profile.Frame{Function: "work"})
	for _, second := range []time.Duration{1, 2, 45} {
		err = errors.Join(err, b.AddAt(epoch.Add(second*time.Second).UnixNano(), []uint32{f}, nil, 1))
	}
	if err := errors.Join(err, s.add(encoded(t, b, epoch))); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"format=pprof": 1, "format=pprof&times=false": 1, "format=pprof&times=true": 2, "format=otlp&times=true": 2} {
		_, body, _ := get(s, "/api/profiles/merged?start="+at(0)+"&end="+at(0.5)+"&"+query)
		p, err := read.Read(strings.NewReader(body), read.Options{Times: true}, profile.DefaultLimits())
		if err != nil || len(p.Samples) != want || p.Total() != 2 {
			t.Errorf("%s: %v, %+v, want %d samples", query, err, p, want)
		}
	}
	for _, query := range []string{"format=folded&times=true", "times=1"} {
		if status, body, _ := get(s, "/api/profiles/merged?"+query); status != 400 {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

// A finding links to a profile only if it has a sample of the workload. A store that starts again reads its files for that.
func TestProfilesOfAWorkloadAreHeld(t *testing.T) {
	s := filled(t, 3, func(o *Options) { o.Instance = "here" })
	again := New(s.opts)
	if err := again.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, again} {
		for _, tt := range []struct {
			workload   string
			start, end float64 // minutes
			want       bool
		}{{"web", 0, 3, true}, {"db", 2, 3, true}, {"cache", 0, 3, false}, {"web", 3, 5, false}, {"", 2.5, 5, true}, {"", 3, 5, false}} {
			if got := s.Held(codelink.CPU, tt.workload, epoch.Add(minutes(tt.start)), epoch.Add(minutes(tt.end))); got != tt.want {
				t.Errorf("%+v is held: %v", tt, got)
			}
		}
	}
	for query, want := range map[string]int{"&workload=web": 3, "&workload=cache": 0, "": 3} {
		var kept keptProfiles
		_, body, _ := get(again, "/api/profiles?start="+at(0)+"&end="+at(3)+query)
		if err := json.Unmarshal([]byte(body), &kept); err != nil || kept.Profiles != want || kept.Instance != "here" {
			t.Errorf("%q: %s, %v", query, body, err)
		}
	}
	for i := range maxKnown + 1 {
		if s.know(entry{size: int64(i)}, &profile.Profile{}); len(s.known) > maxKnown {
			t.Fatalf("the workloads of %d profiles are remembered", len(s.known))
		}
	}
}

func minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

// A difference is of two times, of two workloads, or of both. What the base does not name is as in the query.
func TestDifferenceOfTwoQueries(t *testing.T) {
	s := filled(t, 2, nil)
	now, before := "start="+at(1)+"&end="+at(2), "&base.start="+at(0)+"&base.end="+at(1)
	for query, want := range map[string][]string{
		now + before + "&format=svg":                                      {"work, A 75.00 %, B 75.00 %, +0.00 points", "scan, A 25.00 %, B 25.00 %"},
		now + "&format=svg&base.workload=db":                              {"work, A 0.00 %, B 75.00 %, +75.00 points", "scan, A 100.00 %, B 25.00 %, -75.00 points"},
		now + before + "&format=html&workload=web&base.label=workload:db": {"work, A 0.00 %, B 100.00 %", "scan, A 100.00 %, B 0.00 %", "workload db, 2026-01-02 12:00:00", "<!doctype html>"},
		now + before + "&format=svg&workload=web":                         {"work, A 100.00 %, B 100.00 %", "A: 3 nanoseconds of cpu, B: 30 nanoseconds of cpu"},
	} {
		status, body, _ := get(s, "/api/profiles/merged?"+query)
		for _, part := range want {
			if status != 200 || !strings.Contains(body, part) {
				t.Errorf("%s: %d without %q: %.1500s", query, status, part, body)
			}
		}
	}
	for query, want := range map[string]int{
		now + before: 400, now + before + "&format=folded": 400, now + "&format=svg&base.start=" + at(0): 400, now + "&format=svg&base.label=x": 400,
		now + "&format=svg&base.workload=none": 404, "workload=none&format=svg&" + now + before: 404,
	} {
		if status, body, _ := get(s, "/api/profiles/merged?"+query); status != want {
			t.Errorf("%s: %d, want %d: %.200s", query, status, want, body)
		}
	}
}

// A store that starts again has the files of before, and no other ones. What a kill left of writing is removed.
func TestProfilesAreFoundAgain(t *testing.T) {
	s := filled(t, 3, nil)
	for _, name := range []string{"notes.txt", "5-3.pb.gz", "1-2.pb.gz.new", "-1-2.pb.gz", "01-2.pb.gz"} {
		if err := os.WriteFile(filepath.Join(s.opts.Dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := New(s.opts)
	if err := again.Init(t.Context()); err != nil || len(again.entries) != 3 || again.entries[0] != s.entries[0] {
		t.Errorf("%v: %v, want %v", err, again.entries, s.entries)
	}
	if left := files(t, again); len(left) != 3+4 || slices.Contains(left, "1-2.pb.gz.new") {
		t.Errorf("the files are %q", left)
	}
	if err := again.add(minute(t, epoch, 1)); err != nil || len(again.entries) != 3 {
		t.Errorf("%v: a profile that is there already is there twice: %v", err, again.entries)
	}
	file := filepath.Join(s.opts.Dir, "notes.txt")
	for _, dir := range []string{filepath.Join(t.TempDir(), "none"), file, filepath.Join(file, "below")} {
		if err := New(Options{Dir: dir, Log: s.opts.Log}).Init(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// Profiles are kept as long as the samples of the database, and take a tenth of its size.
func TestOldProfilesAreRemoved(t *testing.T) {
	s := filled(t, 3, nil)
	s.prune(epoch.Add(time.Hour + 90*time.Second))
	if len(s.entries) != 2 || len(files(t, s)) != 2 {
		t.Errorf("kept %v, %q", s.entries, files(t, s))
	}
	s = filled(t, 3, nil)
	s.most = s.entries[1].size + s.entries[2].size
	s.prune(epoch)
	if len(s.entries) != 2 || !s.entries[0].begin.Equal(epoch.Add(time.Minute)) || len(files(t, s)) != 2 {
		t.Errorf("kept %v, %q", s.entries, files(t, s))
	}
	if s := New(Options{RetentionSize: 1000}); s.most != 100 {
		t.Errorf("of 1000 bytes, %d are for profiles", s.most)
	}
}

func files(t *testing.T, s *Store) (names []string) {
	t.Helper()
	all, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

// What the agent has is fetched in order. An error, and a profile that cannot be read, stop nothing.
func TestProfilesOfTheAgentAreFetched(t *testing.T) {
	data := [][]byte{minute(t, epoch, 1), []byte("no profile"), minute(t, epoch.Add(time.Minute), 1)}
	var fails bool
	s := filled(t, 0, func(o *Options) {
		o.Next = func(_ context.Context, after string) ([]byte, string, error) {
			n := len(after)
			if fails || n >= len(data) {
				return nil, "", map[bool]error{true: errors.New("the agent is away")}[fails]
			}
			return data[n], after + "x", nil
		}
	})
	after, err := s.fetch(t.Context(), "")
	if after != "xx" || err == nil || len(s.entries) != 1 {
		t.Errorf("%q %v %v", after, err, s.entries)
	}
	fails = true
	if after, err = s.fetch(t.Context(), after); after != "xx" || err == nil {
		t.Errorf("%q %v", after, err)
	}
	fails = false
	if after, err = s.fetch(t.Context(), after); after != "xxx" || err != nil || len(s.entries) != 2 {
		t.Errorf("%q %v %v", after, err, s.entries)
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// request is a line of the access log.
type request struct {
	Msg, Client, User, Method, Path string
	Parameters                      map[string][]string
	Status                          int
	Omitted                         int `json:"omitted_before"`
}

// requests parses the access log, which is between other lines.
func requests(t *testing.T, log string) (all []request) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("a line of the access log is no JSON: %v\n%q", err, line)
		}
		if r.Msg == "request" {
			all = append(all, r)
		}
	}
	return all
}

// The access log has each query once, cannot be given false lines or secrets, and is bounded.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	s := start(t, "server", "--data-dir", t.TempDir(), "--scrape", "nobody=http://"+freeAddr(t)+"/metrics", "--web.access-log", "queries")
	base := "http://" + s.addr
	forged := "up # \n{\"msg\":\"request\",\"user\":\"root\"}\x1b[2J"
	if _, err := get(base + "/api/v1/query?token=geheim&query=" + url.QueryEscape(forged)); err == nil {
		t.Error("a query with a control character was answered")
	}
	resp, err := http.PostForm(base+"/api/v1/query", url.Values{"query": {"1 + 1"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	ask, err := http.NewRequest(http.MethodGet, base+"/api/v1/labels", nil)
	if err != nil {
		t.Fatal(err)
	}
	ask.Host = "evil.example"
	ask.SetBasicAuth("alice\n", "geheim")
	if resp, err = http.DefaultClient.Do(ask); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := get(base + "/metrics"); err != nil {
		t.Error(err)
	}
	var got []request
	eventually(t, testLimit, "three requests to be logged", func() error {
		if got = requests(t, s.log.String()); len(got) < 3 {
			return errors.New(s.log.String())
		}
		return nil
	})
	if len(got) != 3 || got[0].Parameters["query"][0] != forged || got[0].Status == http.StatusOK ||
		got[1].Method != http.MethodPost || got[1].Parameters["query"][0] != "1 + 1" || got[1].Status != http.StatusOK ||
		got[2].Path != "/api/v1/labels" || got[2].User != "alice\n" || got[2].Status != http.StatusForbidden || got[2].Client != "127.0.0.1" {
		t.Errorf("logged: %+v", got)
	}
	if log := s.log.String(); strings.Contains(log, "geheim") || strings.Contains(log, "\x1b") {
		t.Errorf("the log has a secret or a control character:\n%q", log)
	}

	// A thousand requests with long queries: every one is logged or counted as omitted.
	const flood = 1000
	long := base + "/api/v1/query?query=" + "1%20%23" + strings.Repeat("x", 6000)
	for range flood {
		if _, err := get(long); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, testLimit, "the flood to be logged or counted", func() error {
		// The line after a busy second has the count.
		_, err := get(base + "/api/v1/query?query=1")
		lines, omitted := 0, 0
		for _, r := range requests(t, s.log.String()) {
			omitted += r.Omitted
			if len(r.Parameters["query"]) > 0 && len(r.Parameters["query"][0]) > 1000 {
				lines++
			}
		}
		if lines+omitted < flood {
			err = errors.New("some are missing")
		}
		return err
	})
}

// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// askedByServer starts a server without a database, which asks a real Prometheus with a password. It must answer the page's
// queries as that does, find the same cause, pass on nothing that changes or names secrets, and write nothing.
func askedByServer(t *testing.T, real string, at time.Time, workload, rule string) {
	t.Helper()
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	config := filepath.Join(dir, "http.yml")
	if err := os.WriteFile(config, []byte("basic_auth: {username: u, password: secret-word}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	guarded := withPassword(t, real)
	s := start(t, "server", "--query.url", guarded, "--query.http-config-file", config, "--data-dir", data,
		"--analysis.interval", "1s", "--analysis.window", "12s")
	base := "http://" + s.addr
	for _, expr := range []string{
		`sum by (syscall) (teescope_syscalls_total{workload="` + workload + `"})`, `count by (__name__) ({job="teescope"})`, `up`,
	} {
		theirs, err1 := query(real, expr, at)
		ours, err2 := query(base, expr, at)
		if err1 != nil || err2 != nil || len(theirs) == 0 || !maps.Equal(theirs, ours) {
			t.Errorf("%s: %v %v, and Prometheus says %v %v", expr, ours, err2, theirs, err1)
		}
	}
	for _, path := range []string{
		"query_range?query=up&start=" + seconds(at.Add(-10*time.Second)) + "&end=" + seconds(at) + "&step=1",
		"label/workload/values?start=" + seconds(at.Add(-10*time.Second)) + "&end=" + seconds(at), "format_query?query=sum(up)",
	} {
		theirs, err1 := get(real + "/api/v1/" + path)
		ours, err2 := get(base + "/api/v1/" + path)
		if err1 != nil || err2 != nil || theirs != ours || theirs == "" {
			t.Errorf("%s: %s %v, and Prometheus says %s %v", path, ours, err2, theirs, err1)
		}
	}
	eventually(t, testLimit, "a server without a database to find it", func() error {
		body, err := get(base + "/api/findings?at=" + seconds(at))
		if err != nil {
			return err
		}
		var r report
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.Workload == workload && f.Rule == rule {
				return nil
			}
		}
		return fmt.Errorf("found %s", body)
	})
	for _, path := range []string{"/api/v1/status/config", "/api/v1/status/flags", "/api/v1/rules", "/api/v1/admin/tsdb/snapshot"} {
		if body, err := get(base + path); err == nil {
			t.Errorf("%s is passed on: %s", path, body)
		}
	}
	if page, err := get(base + "/"); err != nil || !strings.Contains(page, "<html") {
		t.Errorf("the page: %.80q, %v", page, err)
	}
	var metrics string
	eventually(t, testLimit, "the finding in the metrics of the server", func() (err error) {
		if metrics, err = get(base + "/metrics"); err == nil && !strings.Contains(metrics, `teescope_finding_info{`) {
			err = fmt.Errorf("%d bytes without it", len(metrics))
		}
		return err
	})
	if strings.Contains(metrics+s.log.String(), "secret-word") {
		t.Error("the password is in the metrics or in the log")
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("it made the data directory: %v", err)
	}
}

func seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// withPassword serves a server for the user u with the password secret-word only.
func withPassword(t *testing.T, base string) string {
	t.Helper()
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "secret-word" {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, base+r.URL.RequestURI(), r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Type", r.Header.Get("Content-Type"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(guarded.Close)
	return guarded.URL
}

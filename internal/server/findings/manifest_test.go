// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// secret is in lines of manifests that no client may see.
const secret = "hunter2-of-the-database"

// withManifest returns an Analyst beside an agent that knows the workload "redis", with a finding about it and others.
func withManifest(t *testing.T, p advise.Program, failure error) *Analyst {
	t.Helper()
	a, _ := analyst(t, &source{}, nil)
	a.opts.Instance = own
	a.opts.Manifest = func(_ context.Context, workload string) ([]byte, error) {
		if workload != "redis" {
			return nil, errors.New("asking the agent: 404 Not Found: no process of the workload runs in Gramine now")
		}
		body, err := json.Marshal(p)
		return body, errors.Join(err, failure)
	}
	elsewhere := findingOf(judged.AEXStorm, "redis", "node2:9750")
	a.newest = &render.Report{Findings: []analysis.Finding{findingOf(judged.OCALLBound, "redis", own), findingOf(judged.EPCThrashing, "other", own), elsewhere}}
	return a
}

// program is a program in Gramine with a manifest.
func program(manifest string) advise.Program {
	return advise.Program{Manifest: "/app/redis.manifest", Text: []byte(manifest), Live: advise.Live{Runtime: "gramine-sgx", App: "redis", Processes: []advise.Process{{PID: 7, Threads: 9}}}}
}

func askManifest(t *testing.T, a *Analyst, query string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/findings/manifest"+query, nil))
	return w.Code, w.Body.String()
}

// TestServeManifest: the lines to change are shown, first those about the cause that was asked for, with the advice about the findings
// of the workload on this machine, and no other line of the manifest.
func TestServeManifest(t *testing.T) {
	a := withManifest(t, program("loader.env.PASSWORD = \""+secret+"\"\nsgx.max_threads = 9\nloader.env.TOKEN = \""+secret+"\"\nsgx.insecure__protected_files_key = \""+secret+"\"\n"), nil)
	status, body := askManifest(t, a, "?workload=redis&instance="+own+"&rule="+judged.OCALLBound)
	if status != http.StatusOK || strings.Contains(body, secret) {
		t.Fatalf("%d, or a secret is shown:\n%s", status, body)
	}
	cause, others, _ := strings.Cut(body, "Other advice about /app/redis.manifest: ")
	for text, in := range map[string]string{
		"enclave exits take much of the time (ocalls)": cause,
		"(thread-slots)\n• ":                           others,
		"\n--- /app/redis.manifest\n+++ /app/redis.manifest.advised\n@@ -2,1 +2,1 @@\n-sgx.max_threads = 9\n+sgx.max_threads = 18\n": others,
		"No lines: one has a key for encryption. ": others,
	} {
		if !strings.Contains(in, text) {
			t.Errorf("%q is not there:\n%s\nothers\n%s", text, cause, others)
		}
	}
	for _, name := range []string{"(aex-rate)", "(preheat)"} { // of other machines and workloads
		if strings.Contains(body, name) {
			t.Errorf("%s is there:\n%s", name, body)
		}
	}
	for line := range strings.Lines(body) {
		changed := strings.Contains(line, "max_threads = ") || strings.Contains(line, "/app/redis.manifest") || strings.Contains(line, " = ")
		if (line[0] == '+' || line[0] == '-') && !changed {
			t.Errorf("%q looks like a changed line", line)
		}
	}
	if _, body := askManifest(t, a, "?workload=redis"); !strings.HasPrefix(body, "\nOther advice about /app/redis.manifest") {
		t.Errorf("without a cause:\n%s", body)
	}
	if _, body := askManifest(t, a, "?workload=redis&rule=none"); !strings.HasPrefix(body, "No line of /app/redis.manifest is about this cause.\n\nOther advice") {
		t.Errorf("for another cause:\n%s", body)
	}
}

func TestServeManifestRefuses(t *testing.T) {
	fine := program("sgx.max_threads = 9\n")
	unread := fine
	unread.Error = "it is no regular file"
	for name, tt := range map[string]struct {
		of      advise.Program
		failure error
		query   string
		status  int
		text    string
	}{
		"no name":          {fine, nil, "", http.StatusBadRequest, "Name the workload"},
		"another machine":  {fine, nil, "?workload=redis&instance=node2:9750", http.StatusNotFound, "beside no agent"},
		"no such workload": {fine, nil, "?workload=other", http.StatusNotFound, "no process of the workload runs in Gramine now. sudo teescope advise --live"},
		"no answer":        {fine, errors.New("no connection\x1b[2J"), "?workload=redis", http.StatusNotFound, "no connection�[2J"},
		"not readable":     {unread, nil, "?workload=redis", http.StatusNotFound, "it is no regular file"},
		"not a manifest":   {program("a = [[[["), nil, "?workload=redis", http.StatusNotFound, "/app/redis.manifest"},
	} {
		status, body := askManifest(t, withManifest(t, tt.of, tt.failure), tt.query)
		if status != tt.status || !strings.Contains(body, tt.text) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	a, _ := analyst(t, &source{}, nil)
	if status, body := askManifest(t, a, "?workload=redis"); status != http.StatusNotFound || !strings.Contains(body, "beside no agent") {
		t.Errorf("without an agent: %d %s", status, body)
	}
}

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

	"github.com/teescope/teescope/internal/advise/lines"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// withAgents returns an Analyst with findings about workloads of two machines. Agents answer with a text or an error. It also returns
// the last question, and the machine that was asked.
func withAgents(t *testing.T, says string, failure error) (a *Analyst, q *lines.Question, asked *string) {
	t.Helper()
	a, _ = analyst(t, &source{}, nil)
	q, asked = new(lines.Question), new(string)
	a.opts.Instance = own
	a.opts.Lines = func(_ context.Context, instance string, question []byte) ([]byte, error) {
		*asked = instance
		*q = lines.Question{}
		return []byte(says), errors.Join(json.Unmarshal(question, q), failure)
	}
	a.newest = &render.Report{Findings: []analysis.Finding{
		findingOf(judged.OCALLBound, "redis", own), findingOf(judged.EPCThrashing, "other", own), findingOf(judged.AEXStorm, "redis", "node2:9750"),
	}}
	return a, q, asked
}

func askManifest(t *testing.T, a *Analyst, query string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/findings/manifest"+query, nil))
	return w.Code, w.Body.String()
}

// TestServeManifest: the agent of the workload's machine is asked, with the findings about this workload on this machine.
func TestServeManifest(t *testing.T) {
	for query, want := range map[string]struct{ asked, rule, finding string }{
		"?workload=redis&instance=" + own + "&rule=" + judged.OCALLBound: {"", judged.OCALLBound, judged.OCALLBound},
		"?workload=redis": {"", "", judged.OCALLBound},
		"?workload=redis&instance=node2:9750&rule=x":      {"node2:9750", "x", judged.AEXStorm},
		"?workload=another&instance=node2:9750&rule=none": {"node2:9750", "none", ""},
	} {
		a, q, asked := withAgents(t, "-sgx.max_threads = 2\r\n+sgx.max_threads = 4\x1b[2J\n", nil)
		status, body := askManifest(t, a, query)
		if status != http.StatusOK || body != "-sgx.max_threads = 2\n+sgx.max_threads = 4\ufffd[2J\n" {
			t.Errorf("%s: %d %q", query, status, body)
		}
		rules := ""
		for _, f := range q.Findings {
			rules += f.Rule
		}
		if *asked != want.asked || q.Rule != want.rule || rules != want.finding || !q.Judged || !strings.Contains(query, q.Workload) {
			t.Errorf("%s: %q was asked %+v", query, *asked, q)
		}
	}
}

// An error says on which machine which command shows the lines.
func TestServeManifestRefuses(t *testing.T) {
	none := errors.New("asking the agent: 404 Not Found: no process of the workload runs in Gramine now\x1b[2J")
	for name, tt := range map[string]struct {
		query  string
		status int
		text   string
	}{
		"no name":     {"", http.StatusBadRequest, "Name the workload: ?workload=NAME."},
		"no answer":   {"?workload=redis&instance=node2:9750", http.StatusNotFound, "runs in Gramine now\ufffd[2J. Run this on node2: sudo teescope advise --live"},
		"no instance": {"?workload=redis", http.StatusNotFound, ". Run this on the machine of the workload: sudo teescope advise --live"},
		"hostile":     {"?workload=redis&instance=" + strings.Repeat("%1b", 3000), http.StatusNotFound, "\ufffd: sudo teescope advise --live"},
	} {
		a, _, _ := withAgents(t, "", none)
		if status, body := askManifest(t, a, tt.query); status != tt.status || !strings.HasSuffix(body, tt.text) || len(body) > 1000 {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	a, _ := analyst(t, &source{}, nil)
	if status, body := askManifest(t, a, "?workload=redis&instance=n:1"); status != http.StatusNotFound || body != "This server reaches no agent. Run this on n: sudo teescope advise --live" {
		t.Errorf("without agents: %d %s", status, body)
	}
}

// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// An agent that is scraped is asked with the credentials of its scrapes. No other target is asked, and no redirect is followed.
func TestAsk(t *testing.T) {
	agent := func(password string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, got, _ := r.BasicAuth()
			body, _ := io.ReadAll(r.Body)
			switch {
			case r.URL.Path == "/metrics":
				w.Header().Set("Content-Type", "text/plain; version=0.0.4")
				fmt.Fprintln(w, "x 1")
			case got != password:
				http.Error(w, "who are you", http.StatusUnauthorized)
			case r.URL.Path == "/elsewhere":
				http.Redirect(w, r, "/api", http.StatusTemporaryRedirect)
			case r.URL.Path == "/large":
				_, _ = io.WriteString(w, strings.Repeat("x", mostAsked+1))
			default:
				fmt.Fprintf(w, "%s %s %s %q", r.Method, r.URL, r.Header.Get("Content-Type"), body)
			}
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	dir := t.TempDir()
	client := func(password string) string {
		name := filepath.Join(dir, password+".yml")
		if err := os.WriteFile(name, []byte("basic_auth: {username: me, password: "+password+"}"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	first, second, refusing := agent("first"), agent("common"), agent("another")
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval = 200 * time.Millisecond
	o.Targets = []string{first, second, refusing}
	o.TargetsConfig = []AgentClient{{first, client("first")}, {"", client("common")}}
	s, _ := start(t, o)
	for _, instance := range o.Targets {
		waittest.Until(t, "samples of "+instance, func() bool {
			labels, _, _ := samples(t, s, fmt.Sprintf(`x{instance=%q}[1m]`, instance))
			return labels != nil
		})
	}
	for _, tt := range []struct{ instance, path, says string }{
		{first, "/api", `POST /api application/json "{}"`}, {second, "/api", `POST /api application/json "{}"`},
		{refusing, "/api", "asking the agent: 401 Unauthorized: who are you"},
		{first, "/elsewhere", "asking the agent: 307 Temporary Redirect"}, {first, "/large", "it is larger than 1 MiB"},
		{o.Instance, "/api", "no agent is scraped on that machine"}, {"127.0.0.1:1", "/api", "no agent is scraped on that machine"}, {"", "/api", "no agent is scraped"},
	} {
		got, err := NewAsker(s).Ask(t.Context(), tt.instance, tt.path, []byte("{}"))
		if said := string(got); err == nil && said != tt.says || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s%s: %q, %v, want %s", tt.instance, tt.path, said, err, tt.says)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/server/discovery"
)

// Two agents are listed and two are found. One of each has a pattern, and gets the password of its file. No agent ever gets
// that of another one.
func TestAgentsHaveCredentialsOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	agent := func(password string) string {
		one := &exporter{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, got, _ := r.BasicAuth(); got != password {
				t.Errorf("an agent with the password %q gets %q", password, got)
			}
			one.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	listed, own, found, foundOwn := agent("common"), agent("first"), agent("common"), agent("second")
	client := func(password string) string {
		return write(password+".yml", fmt.Sprintf("basic_auth: {username: me, password: %s}", password))
	}
	agents := write("agents.json", fmt.Sprintf(`[{"targets": [%q, %q, %q]}]`, found, foundOwn, own))

	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval = nil, 200*time.Millisecond
	o.Targets = []string{listed, own}
	o.TargetsConfig = []AgentClient{{own, client("first")}, {"", client("common")}, {"[1]" + foundOwn[1:], client("second")}}
	o.Discovery = discovery.New(discovery.Options{Sources: []discovery.Source{{Kind: discovery.File, Where: agents}}, Log: o.Log})
	s, _ := start(t, o)
	for _, instance := range []string{listed, own, found, foundOwn} {
		waittest.Until(t, "samples of "+instance, func() bool {
			labels, _, _ := samples(t, s, fmt.Sprintf(`scrapes_total{job="teescope",instance=%q}[1m]`, instance))
			return labels != nil
		})
	}
	var data struct{ Result []sample }
	if get(t, s.Handler(), "/query?query=scrapes_total", &data); len(data.Result) != 4 {
		t.Errorf("%d series of 4 agents: %v", len(data.Result), data.Result)
	}
}

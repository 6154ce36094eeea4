// SPDX-License-Identifier: Apache-2.0

package live

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// server answers about the processes of the fake machine. The processes of each workload are known.
func server(f fake) *Server {
	return NewServer(f.machine(), func(name string) ([]int, bool) {
		pids, known := map[string][]int{"redis": {100, 200}, "py": {300}, "db": {400}, "shell": {500}, "orphan": {600}, "gone": {7777}}[name]
		return pids, known
	})
}

// post sends a request and returns the answer.
func post(t *testing.T, s *Server, question string) (int, string) {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(question))
	r.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The program that is read has its manifest, its processes and the facts about the machine.
func TestServedProgram(t *testing.T) {
	f := newFake(t)
	got, _ := server(f).program("redis")
	if string(got.Text) != "sgx.max_threads = 8\n" || got.Manifest != "/app/redis-server.manifest.sgx" || got.Live.Workload != "redis" || len(got.Live.Processes) != 2 || got.Live.Processes[0].Threads != 3 || got.Error != "" {
		t.Errorf("%+v", got)
	}
	if n, ok := got.Machine.CPUs(); !ok || n != 8 {
		t.Errorf("the machine has %d CPUs: %+v", n, got.Machine)
	}
	if got, _ := server(f).program("py"); !strings.Contains(got.Error, "no such file") || got.Text != nil {
		t.Errorf("without a manifest: %+v", got)
	}
	if err := os.Truncate(filepath.Join(f.dir, "container/app/redis-server.manifest.sgx"), maxAnswered+1); err != nil {
		t.Fatal(err)
	}
	if got, _ := server(f).program("redis"); got.Text != nil || got.Error != "it has more than 1 MiB" {
		t.Errorf("a large manifest: %.300v", got)
	}
}

func TestServe(t *testing.T) {
	f := newFake(t)
	manifest := filepath.Join(f.dir, "container/app/redis-server.manifest.sgx")
	if err := os.WriteFile(manifest, []byte("loader.env.PASSWORD = \"secret\"\nsgx.max_threads = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const redis = `{"workload": "redis", "rule": "", "judged": true, "findings": []}`
	status, body := post(t, server(f), redis)
	if status != http.StatusOK || !strings.Contains(body, "\n-sgx.max_threads = 2\n+sgx.max_threads = 4\n") || strings.Contains(body, "secret") {
		t.Errorf("%d %s", status, body)
	}
	for _, name := range []string{"db", "shell", "orphan", "gone", "none", ""} {
		if code, body := post(t, server(f), `{"workload": "`+name+`"}`); code != http.StatusNotFound || !strings.Contains(body, "runs in Gramine now") {
			t.Errorf("%q: status %d %s", name, code, body)
		}
	}
	if code, body := post(t, server(f), `{"workload": "py"}`); code != http.StatusNotFound || !strings.Contains(body, "no such file") {
		t.Errorf("without a manifest: %d %s", code, body)
	}
	if code, _ := post(t, server(f), "redis"); code != http.StatusBadRequest {
		t.Errorf("no question: %d", code)
	}
	if code, body := post(t, server(f), `{"workload": "`+strings.Repeat("x", 60_000)+`"}`); code != http.StatusNotFound || len(body) > 2*maxReason || text.Label(strings.TrimSpace(body)) != strings.TrimSpace(body) {
		t.Errorf("a long name: %d %s", code, body)
	}
}

// After an answer the next request waits twenty times as long as the answer took. A request that would wait too long is refused
// at once and takes no turn.
func TestServePauses(t *testing.T) {
	s := server(newFake(t))
	began := time.Now()
	end, ok := s.begin(t.Context())
	if !ok {
		t.Fatal("the first one is refused")
	}
	const took = time.Millisecond
	time.Sleep(took)
	end()
	if next := <-s.turn; next.Sub(began) < pauseFactor*took {
		t.Errorf("the next one begins %s after the first", next.Sub(began))
	}
	if p := pause(time.Hour); p != maxPause {
		t.Errorf("after a program whose processes hardly answer, no request is answered for %s", p)
	}
	later := time.Now().Add(time.Hour)
	s.turn <- later
	if status, body := post(t, s, `{"workload": "redis"}`); status != http.StatusServiceUnavailable || !strings.Contains(body, "try again later") {
		t.Errorf("%d %s", status, body)
	}
	if next := <-s.turn; !next.Equal(later) {
		t.Errorf("who was refused has moved the turn to %s", next)
	}
}

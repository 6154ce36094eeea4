// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise"
)

// ask returns the answer about a workload. The processes of each workload of the fake machine are known.
func ask(t *testing.T, f fake, workload string) (advise.Program, int) {
	t.Helper()
	s := NewServer(f.machine(), func(name string) ([]int, bool) {
		pids, known := map[string][]int{"redis": {100, 200}, "py": {300}, "db": {400}, "shell": {500}, "orphan": {600}, "gone": {7777}}[name]
		return pids, known
	})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?workload="+workload, nil))
	var got advise.Program
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, w.Body)
		}
	}
	return got, w.Code
}

func TestServe(t *testing.T) {
	f := newFake(t)
	got, _ := ask(t, f, "redis")
	if string(got.Text) != "sgx.max_threads = 8\n" || got.Manifest != "/app/redis-server.manifest.sgx" || got.Live.Workload != "redis" || len(got.Live.Processes) != 2 || got.Live.Processes[0].Threads != 3 || got.Error != "" {
		t.Errorf("%+v", got)
	}
	if n, ok := got.Machine.CPUs(); !ok || n != 8 {
		t.Errorf("the machine has %d CPUs: %+v", n, got.Machine)
	}
	if got, _ := ask(t, f, "py"); !strings.Contains(got.Error, "no such file") || got.Text != nil {
		t.Errorf("without a manifest: %+v", got)
	}
	for _, name := range []string{"db", "shell", "orphan", "gone", "none", ""} {
		if _, code := ask(t, f, name); code != http.StatusNotFound {
			t.Errorf("%q: status %d", name, code)
		}
	}
	if err := os.Truncate(filepath.Join(f.dir, "container/app/redis-server.manifest.sgx"), maxAnswered+1); err != nil {
		t.Fatal(err)
	}
	if got, _ := ask(t, f, "redis"); got.Text != nil || got.Error != "it has more than 4 MiB" {
		t.Errorf("a large manifest: %.300v", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReport writes a report of a real server under load and reads its content; test/browser renders one.
func TestReport(t *testing.T) {
	t.Parallel()
	up := start(t, "up", "--interval", "1s", "--data-dir", t.TempDir())
	port := redis(t, "redis-server")
	background(t, "sh", "-c", "while redis-benchmark -h 127.0.0.1 -p "+port+" -t get -c 2 -n 3000 -q; do sleep 0.2; done")
	busy := `count_over_time(teescope_syscalls_total{workload="redis-server",syscall="read"}[1m]) > 8`
	eventually(t, testLimit, "system calls of Redis", func() error {
		found, err := query("http://"+up.addr, busy, time.Now())
		if err == nil && len(found) == 0 {
			err = errors.New("there are none")
		}
		return err
	})
	file := filepath.Join(t.TempDir(), "redis.html")
	out, code := reported(t, "--server", up.addr, "--window", "1m", "--workload", "redis-server", "-o", file)
	if code != 0 || !strings.Contains(out, "redis.html: ") {
		t.Fatalf("status %d: %s", code, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the report has %d kB", len(data)/1000)
	if len(data) > 2_000_000 {
		t.Errorf("the report has %d bytes", len(data))
	}
	read := recorded(t, data)
	calls, failed := 0, 0
	for _, a := range read.Answers {
		if a.Error != "" {
			failed++
			t.Errorf("%s: %s", a.Expr, a.Error)
		}
		for _, s := range a.Series {
			if w := s.M["workload"]; w != "" && strings.Contains(a.Expr, "{$workloads") && w != "redis-server" {
				t.Errorf("%s has the workload %s", a.Expr, w)
			}
			if s.M["syscall"] == "read" {
				calls++
			}
		}
	}
	if calls == 0 || len(read.Answers) < 100 {
		t.Errorf("%d series of read, %d answers", calls, len(read.Answers))
	}
	if read.Findings.Window != 60 {
		t.Errorf("the findings are of %v s", read.Findings.Window)
	}

	for _, c := range []struct{ arguments, want string }{
		{"--server 127.0.0.1:1", "nothing listens on 127.0.0.1:1: start one there"},
		{"--server " + up.addr + " --workload redis-sever", "no workload with this name was seen in this time range; seen were"},
		{"--server " + up.addr + " --from 2025-01-01T00:00:00Z --to 2025-01-01T01:00:00Z", "has no series between 2025-01-01T00:00:00Z"},
		{"--window 1s", "use a duration from 10s to 7d"},
		{"--from 12 --window 5m", "exclude each other"},
	} {
		out, code := reported(t, append([]string{"-o", file + ".none"}, strings.Fields(c.arguments)...)...)
		if code != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d, %s; want %q", c.arguments, code, out, c.want)
		}
	}
	if _, err := os.Stat(file + ".none"); err == nil {
		t.Error("a report that failed left a file")
	}
}

// reported runs teescope report, and returns its output and exit status.
func reported(t *testing.T, args ...string) (string, int) {
	t.Helper()
	return ended(t, append([]string{"report"}, args...)...)
}

// ended runs a command of teescope to its end, and returns its output and exit status.
func ended(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

type recording struct {
	Findings struct {
		Window float64 `json:"window_seconds"`
	}
	Answers []struct {
		Expr, Error string
		Series      []struct{ M map[string]string }
	}
}

// recorded reads the recording in a report.
func recorded(t *testing.T, file []byte) recording {
	t.Helper()
	found := regexp.MustCompile(`id="recording">([^<]*)</script>`).FindSubmatch(file)
	if found == nil {
		t.Fatal("the report has no recording")
	}
	packed, err := base64.StdEncoding.DecodeString(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCUDA uses the shipped file of probes on a library with the exported names of libcuda. Each number is in gpu/app.c.
func TestCUDA(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	library, app := filepath.Join(dir, "libcuda.so.1"), filepath.Join(dir, "app")
	for _, args := range [][]string{
		{"-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, "gpu/libcuda.c"},
		{"-O1", "-Wall", "-Wextra", "-Werror", "-o", app, "gpu/app.c", library, "-Wl,-rpath," + dir},
	} {
		if err := quiet("gcc", args...); err != nil {
			t.Fatal(err)
		}
	}
	shipped, err := os.ReadFile("../../deploy/probes/libcuda.yaml")
	if err != nil {
		t.Fatal(err)
	}
	probes := filepath.Join(dir, "probes.yaml")
	const installed = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
	if n := strings.Count(string(shipped), "symbol:"); strings.Count(string(shipped), installed) != n {
		t.Fatalf("not all of %d probes are on %s", n, installed)
	}
	if err := os.WriteFile(probes, []byte(strings.ReplaceAll(string(shipped), installed, library)), 0o600); err != nil {
		t.Fatal(err)
	}
	u := startBy(t, tracer, "agent", "--probes.file", probes)
	p := held(t, copyTo(t, app, "e2ecuda"))
	p.letGo(t)
	eventually(t, testLimit, "the program's calls", func() error {
		if !strings.Contains(p.log.String(), "done") {
			return fmt.Errorf("it has written %q", p.log.String())
		}
		return nil
	})
	s := u.scrape(t)
	for _, tt := range []struct {
		family string
		labels []string
		want   float64
	}{
		{"to_gpu_bytes_total", nil, 55_000},
		{"to_gpu_blocked_seconds_count", nil, 10},
		{"from_gpu_bytes_total", nil, 5 << 20},
		{"from_gpu_blocked_seconds_count", nil, 5},
		{"to_gpu_async_bytes_total", nil, 700},
		{"to_gpu_async_blocked_seconds_count", nil, 100},
		{"from_gpu_async_bytes_total", nil, 15 << 30},
		{"from_gpu_async_blocked_seconds_count", nil, 3},
		{"launches_total", nil, 40},
		{"graph_launches_total", nil, 4},
		{"stream_waits_seconds_count", nil, 6},
		{"context_waits_seconds_count", nil, 2},
		{"starts_total", []string{"result", "0"}, 1},
		{"starts_total", []string{"result", "802"}, 1},
		{"starts_total", nil, 2},
	} {
		labels := append([]string{"workload", "e2ecuda"}, tt.labels...)
		if got := s.sum("teescope_user_cuda_"+tt.family, labels...); got != tt.want {
			t.Errorf("%s%v = %v, want %v", tt.family, tt.labels, got, tt.want)
		}
	}
	// A copy of the stand-in takes a millisecond or more.
	for family, least := range map[string]float64{"to_gpu": 0.010, "from_gpu": 0.005} {
		if got := s.sum("teescope_user_cuda_"+family+"_blocked_seconds_sum", "workload", "e2ecuda"); got < least {
			t.Errorf("%s blocked for %v s, want %v at least", family, got, least)
		}
	}
}

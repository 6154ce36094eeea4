// SPDX-License-Identifier: Apache-2.0

//go:build sgx && bench

package sgx

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	rounds  = 8
	seconds = 2 // of each window
)

// TestThroughput prints the cost of watching for a server in an enclave, as ratios to the unwatched window of the same
// round. It checks only that enough was measured. An emulated machine shows the amount of work for watching, and not
// its duration. The cost of each program is written to bin/sgx-metrics.txt for bench/probecost.
func TestThroughput(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command("../../testbed/run", "-epc", "4", "-timeout", "10m", "-env", fmt.Sprintf("ROUNDS=%d", rounds),
		"-env", fmt.Sprintf("SECONDS_EACH=%d", seconds), "-in", buildBinary(t), "-in", "testdata/throughput.sh", "-to", dir,
		"-out", "metrics.cost", "-out", "agent.log", "--", "sh", "throughput.sh").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("\n%s", out)
	rates := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		var round int
		var mode, text string
		if n, _ := fmt.Sscanf(line, "%d %s %s", &round, &mode, &text); n < 3 {
			continue
		}
		var load struct{ Seconds, Requests, Errors float64 }
		if err := json.Unmarshal([]byte(text), &load); err != nil || load.Seconds == 0 || load.Errors > 0 {
			t.Fatalf("%s: %v", line, err)
		}
		rates[mode] = append(rates[mode], load.Requests/load.Seconds)
	}
	for _, mode := range []string{"off", "on"} {
		if len(rates[mode]) != rounds || slices.Min(rates[mode]) == 0 {
			t.Fatalf("%s: %v requests a second in %d windows, want %d", mode, rates[mode], len(rates[mode]), rounds)
		}
		ratios := make([]float64, rounds)
		for i := range ratios {
			ratios[i] = rates[mode][i] / rates["off"][i]
		}
		slices.Sort(ratios)
		t.Logf("%-4s %6.0f requests/s, ratio to off %.3f, quartiles %.3f-%.3f, all %.3f-%.3f (n=%d)", mode, median(rates[mode]),
			median(ratios), ratios[rounds/4], ratios[rounds-1-rounds/4], ratios[0], ratios[rounds-1], rounds)
	}
	if err := os.MkdirAll("../../bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../../bin/sgx-metrics.txt", read(t, filepath.Join(dir, "metrics.cost")), 0o644); err != nil {
		t.Fatal(err)
	}
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// TestHowFarSampledCallsAreOff measures the error of sampled counts against the programs' own counts, alone and beside
// loops on all CPUs. It checks nothing. SAMPLING_BIAS is the number of measurements of five seconds each.
func TestHowFarSampledCallsAreOff(t *testing.T) {
	looks, _ := strconv.Atoi(os.Getenv("SAMPLING_BIAS"))
	if looks == 0 {
		t.Skip("SAMPLING_BIAS is not set")
	}
	c := running(t, Options{})
	c.hold(t, sampling.Off) // from here, the reported counts are one cycle old at once
	c.hold(t, sampling.Sampled)
	for _, beside := range []int{0, runtime.NumCPU()} {
		for _, kind := range []string{"steady", "bursty", "loop", "mixed"} {
			t.Run(kind+"-beside-"+strconv.Itoa(beside), func(t *testing.T) {
				for range beside {
					spin(t)
				}
				k := talk(t, kind)
				time.Sleep(3 * time.Second)
				var ratios []float64
				held := 0
				for range looks {
					truth0, calls0, var0 := k.look(t, c)
					time.Sleep(5 * time.Second)
					truth1, calls1, var1 := k.look(t, c)
					truth, calls := truth1-truth0, calls1-calls0
					ratios = append(ratios, calls/truth)
					if math.Abs(calls-truth) <= 1.96*math.Sqrt(var1-var0) {
						held++
					}
					t.Logf("%.0f calls/s, reported %+.1f%% +- %.1f%%", truth/5, 100*(calls/truth-1), 196*math.Sqrt(var1-var0)/truth)
				}
				mean, half := meanOf(ratios)
				t.Logf("RESULT %s beside %d: %+.1f%% +- %.1f%% (n=%d), the interval contained the true value %d times", kind, beside, 100*(mean-1), 100*half, looks, held)
			})
		}
	}
}

func (k talker) look(t *testing.T, c *Collector) (truth, calls, variance float64) {
	t.Helper()
	truth = k.calls(t)
	time.Sleep(sampling.Period) // the reported counts are one cycle old
	calls, variance = k.estimate(scrape(t, c))
	return truth, calls, variance
}

func spin(t *testing.T) {
	t.Helper()
	cmd := exec.Command(program(t, filepath.Base("spin")))
	cmd.Env = append(os.Environ(), "SYSTEM_TEST_JOB=burn", "SYSTEM_TEST_N=1h")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// meanOf returns the mean, and twice the standard error as half of its 95 % interval.
func meanOf(v []float64) (mean, half float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	squares := 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return mean, 2 * math.Sqrt(squares/float64(len(v)-1)/float64(len(v)))
}

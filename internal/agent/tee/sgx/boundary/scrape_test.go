// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
)

const waits = 50 * time.Millisecond

// scanning holds a lock, like scans that follow each other without a pause, until the returned function is called.
func scanning(mu *sync.Mutex) (stop func()) {
	var over atomic.Bool
	var wg sync.WaitGroup
	mu.Lock()
	wg.Go(func() {
		for !over.Load() {
			time.Sleep(2 * waits)
			mu.Unlock()
			mu.Lock()
		}
		mu.Unlock()
	})
	return func() { over.Store(true); wg.Wait() }
}

// While a scan holds the lock, a scrape repeats the last counts if they are not old. Otherwise it waits for its turn, also if scans follow each
// other.
func TestAScrapeRepeatsNoOldCounts(t *testing.T) {
	for what, age := range map[string]time.Duration{"none": 0, "new": -time.Hour, "old": scrapeRepeat} {
		var mu sync.Mutex
		var earlier atomic.Pointer[emitted]
		if what != "none" {
			earlier.Store(&emitted{at: time.Now().Add(-age)})
		}
		stop := mu.Unlock
		if what == "new" {
			mu.Lock()
		} else {
			stop = scanning(&mu)
		}
		got := make(chan *emitted, 1)
		go func() {
			last := lockOr(&mu, &earlier, waits)
			if last == nil {
				mu.Unlock()
			}
			got <- last
		}()
		select {
		case last := <-got:
			if (last != nil) != (what == "new") {
				t.Errorf("with %s earlier counts: repeated %v", what, last != nil)
			}
		case <-time.After(2 * time.Minute):
			t.Errorf("with %s earlier counts a scrape gets no turn", what)
		}
		stop()
	}
}

// A scrape that repeats counts says how old they are.
func TestRepeatedCountsHaveAnAge(t *testing.T) {
	b := &Backend{families: count.NewFamilies()}
	b.mu.Lock()
	over := make(chan struct{})
	go func() {
		for renewed := time.NewTicker(waits); ; {
			b.emitted.Store(&emitted{at: time.Now().Add(-time.Second)})
			select {
			case <-over:
				renewed.Stop()
				b.mu.Unlock()
				return
			case <-renewed.C:
			}
		}
	}()
	ages := 0
	err := b.Collect(t.Context(), func(m prometheus.Metric) {
		var one dto.Metric
		if err := m.Write(&one); err != nil {
			t.Error(err)
		}
		if ages++; one.GetGauge().GetValue() < 1 {
			t.Errorf("counts of a second ago have the age %v", one.GetGauge().GetValue())
		}
	})
	close(over)
	if err != nil || ages != 1 {
		t.Errorf("%d ages, %v", ages, err)
	}
}

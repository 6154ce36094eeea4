// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// cpuTime returns the CPU time that a process has used.
func (p *process) cpuTime(t *testing.T) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// shareOf returns the share of a processor that a process uses within a time.
func (p *process) shareOf(t *testing.T, within time.Duration) float64 {
	t.Helper()
	before, began := p.cpuTime(t), time.Now()
	time.Sleep(within)
	return (p.cpuTime(t) - before).Seconds() / time.Since(began).Seconds()
}

// hammered counts what clients got: answers, refusals because they ask too often, and anything else, such as connections
// that were turned away.
type hammered struct{ answers, refusals, others atomic.Int64 }

// count counts an answer.
func (h *hammered) count(resp *http.Response) {
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode == http.StatusOK:
		h.answers.Add(1)
	case strings.Contains(string(body), "Too many requests for metrics"):
		h.refusals.Add(1)
	default:
		h.others.Add(1)
	}
}

// hammer repeats requests for metrics until stop is closed. It returns when all clients have ended.
func hammer(addr string, clients int, keep bool, stop chan struct{}, got *hammered) {
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}, Timeout: testLimit}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Get("http://" + addr + "/metrics")
				if err != nil {
					got.others.Add(1)
					continue
				}
				got.count(resp)
			}
		})
	}
	wg.Wait()
}

// regularScraper scrapes every 500 ms until stop is closed, and returns its failures and how many scrapes took more than ten
// seconds.
func regularScraper(addr string, stop chan struct{}) (scrapes, late int, failed error) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: testLimit}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ; ; scrapes++ {
		select {
		case <-stop:
			return scrapes, late, failed
		case <-tick.C:
		}
		began := time.Now()
		resp, err := client.Get("http://" + addr + "/metrics")
		if err != nil {
			return scrapes, late, err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			return scrapes, late, fmt.Errorf("status %d, %v", resp.StatusCode, err)
		}
		if time.Since(began) > 10*time.Second {
			late++
		}
	}
}

// Clients that request metrics as fast as they can take at most 2 % of a processor from the agent, and a regular scraper is
// served meanwhile.
//
// False alarms: below 2e-7. Two rounds took 0.7 % each. When clients took more than their share, ten rounds, half of them
// beside other load, took 1.5 % on average with a standard deviation of 0.5 %. If the variance is in proportion to the mean,
// the standard deviation at 0.7 % is 0.34 %, so the limit of 2 % is 3.8 of them above the mean. By Cantelli's inequality a
// round of any distribution is above that in less than one of 13 cases, and all of six rounds must be. The first requests
// have a time of their own, and a round begins when it is used up.
func TestAttackHammeredMetrics(t *testing.T) {
	addr := freeAddr(t)
	a := &teescope{process: background(t, binary, "agent", "--listen", addr), addr: addr}
	eventually(t, startWithin, "the agent", func() error {
		_, err := get("http://" + addr + "/-/ready")
		return err
	})
	stop, done := make(chan struct{}), make(chan struct{})
	var scrapes, late int
	var failed error
	go func() {
		defer close(done)
		scrapes, late, failed = regularScraper(addr, stop)
	}()
	time.Sleep(3 * time.Second) // a regular scraper has scraped regularly
	inOneOf(t, 6, func() error {
		without := a.shareOf(t, 8*time.Second)
		var got hammered
		pause, ended := make(chan struct{}), make(chan struct{})
		var clients sync.WaitGroup
		clients.Go(func() { hammer(addr, 48, true, pause, &got) })
		clients.Go(func() { hammer(addr, 16, false, pause, &got) })
		go func() {
			clients.Wait()
			close(ended)
		}()
		// The first refusal of this kind follows when the CPU time for the first requests is used up. A connection may be turned
		// away before that.
		eventually(t, testLimit, "refusals", func() error {
			if got.refusals.Load() == 0 {
				return errors.New("none yet")
			}
			return nil
		})
		before := got.answers.Load()
		busy := a.shareOf(t, 12*time.Second)
		t.Logf("%.2f %% of a processor without them, %.2f %% while hammered; %d answers in 12 s, %d refusals, %d others", 100*without, 100*busy,
			got.answers.Load()-before, got.refusals.Load(), got.others.Load())
		close(pause)
		<-ended
		if busy-without > 0.02 {
			return fmt.Errorf("clients take %.2f %% of a processor", 100*(busy-without))
		}
		return nil
	})
	close(stop)
	<-done
	t.Logf("a regular scraper: %d scrapes, %d of them took more than 10 s, %v", scrapes, late, failed)
	if failed != nil || late > max(2, scrapes/4) { // the machine may stall
		t.Error("a regular scraper is not served")
	}
}

// SPDX-License-Identifier: Apache-2.0

package clientname

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAClientDelaysAnotherByOneRequest has a client with a running and ten waiting requests. The request of another client is next.
func TestAClientDelaysAnotherByOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1, 1)
		leave := p.Take(t.Context(), "10.0.0.1:1")
		served := make(chan string, 11)
		request := func(from string) {
			go func() {
				if end := p.TakeWithin(t.Context(), from, time.Minute); end != nil {
					served <- from
					end()
				}
			}()
		}
		for range 10 {
			request("10.0.0.1:2")
		}
		synctest.Wait()
		request("10.0.0.2:1")
		synctest.Wait()
		leave()
		synctest.Wait()
		if first := <-served; first != "10.0.0.2:1" {
			t.Errorf("%s is next", first)
		}
		if len(served) != 10 {
			t.Errorf("%d of 10 other requests are served", len(served))
		}
		if clients, places := p.Requests(); clients != 0 || places != 0 {
			t.Errorf("%d clients and %d places are left", clients, places)
		}
	})
}

// TestAPlaceIsNotAwaitedForLonger has requests for a place that stays taken.
func TestAPlaceIsNotAwaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1, 1)
		defer p.Take(t.Context(), "10.0.0.1:1")()
		for _, from := range []string{"10.0.0.1:2", "10.0.0.2:1"} {
			began := time.Now()
			if end := p.TakeWithin(t.Context(), from, time.Second); end != nil || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v", from, end != nil, time.Since(began))
			}
		}
		if clients, _ := p.Requests(); clients != 1 {
			t.Errorf("%d clients are left", clients)
		}
	})
}

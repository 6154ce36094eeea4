// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
)

// distant is a receiver without a network, so that its time can be that of a synctest bubble.
type distant struct {
	mu    sync.Mutex
	err   error // of the connection
	got   []string
	tries []time.Time // that failed
}

func (d *distant) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		d.tries = append(d.tries, time.Now())
		return nil, d.err
	}
	d.got = append(d.got, string(body))
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: req}, nil
}

// fail sets the error of the connection, or none.
func (d *distant) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// TestOutageOfHours has a receiver that cannot be reached for five hours. A request with ten samples is added every minute.
// Without limits nothing is lost. With an age of four hours, or the space of four hours, the samples of the first hour are
// dropped, counted and logged. The receiver then gets all others, once and in order, within a minute. During the outage it is
// tried at once, and again after a second, two, four, and so on up to a minute.
func TestOutageOfHours(t *testing.T) {
	const hours, perHour, samples = 5, 60, 10
	for name, tt := range map[string]struct {
		bytes   int64
		age     time.Duration
		lost    int // requests
		because string
	}{
		"no limit": {0, 0, 0, Full},
		"age":      {0, 4 * time.Hour, perHour, Old},
		"size":     {4 * perHour * block, 0, perHour, Full},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var log logtest.Log
				q, err := Open(Options{Dir: dir, Bytes: tt.bytes, Age: tt.age, Log: slog.New(slog.NewTextHandler(&log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				there := &distant{err: errors.New("connection refused")}
				s := Sender{Queue: q, Client: &http.Client{Transport: there}, URL: "http://receiver.example/write"}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					s.Run(ctx)
				}()
				began := time.Now()
				for i := range hours * perHour {
					q.Add(fmt.Appendf(nil, "%d", i), samples, time.Now())
					time.Sleep(time.Minute)
				}
				synctest.Wait()
				for i := 1; i < len(there.tries); i++ {
					pause, want := there.tries[i].Sub(there.tries[i-1]), time.Minute
					if i <= 6 {
						want = time.Second << (i - 1)
					}
					if pause != want {
						t.Fatalf("try %d is %v after the one before, want %v", i, pause, want)
					}
				}
				if n := len(there.tries); n < (hours-1)*60 || !there.tries[0].Equal(began) {
					t.Fatalf("%d tries in %d hours, the first one after %v", n, hours, there.tries[0].Sub(began))
				}
				there.fail(nil)
				time.Sleep(time.Minute)
				synctest.Wait()
				stop()
				<-ended
				state := q.State()
				if lost := int(state.Dropped[tt.because]) / samples; lost < tt.lost || lost > tt.lost+1 || len(there.got)+lost != hours*perHour || state.Requests > 0 {
					t.Errorf("%d lost of %d, %d received, %+v", lost, hours*perHour, len(there.got), state)
				}
				for i, body := range there.got {
					if n, err := strconv.Atoi(body); err != nil || n != i+hours*perHour-len(there.got) {
						t.Fatalf("request %d is %q", i, body)
					}
				}
				lines := log.String()
				if said := strings.Count(lines, "samples are dropped"); said != min(1, tt.lost) || strings.Count(lines, "sending samples failed") != 1 || !strings.Contains(lines, "sending samples works again") {
					t.Errorf("the log has\n%s", lines)
				}
				if want := fmt.Sprintf(`msg="sending again; samples were dropped" samples=%d`, state.Dropped[tt.because]); tt.lost > 0 && !strings.Contains(lines, want) {
					t.Errorf("the log lacks %q:\n%s", want, lines)
				}
			})
		})
	}
}

// TestEachOutageBeginsWithShortPauses: what an outage has taught does not delay the samples of the next one.
func TestEachOutageBeginsWithShortPauses(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		q := open(t, dir, 0, 0, nil)
		there := &distant{}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			(&Sender{Queue: q, Client: &http.Client{Transport: there}, URL: "http://receiver.example/write"}).Run(ctx)
		}()
		for outage := range 2 {
			begun := len(there.tries)
			there.fail(errors.New("connection refused"))
			q.Add([]byte("x"), 1, time.Now())
			time.Sleep(10 * time.Minute)
			there.fail(nil)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if its := there.tries[begun:]; len(its) < 10 || its[1].Sub(its[0]) != firstPause || len(there.got) != outage+1 {
				t.Errorf("outage %d: tries at %v, %d requests received", outage, its, len(there.got))
			}
		}
		stop()
		<-ended
	})
}

// TestReceiverSaysWhen has a receiver that asks to wait. The sender does, but not longer than a minute.
func TestReceiverSaysWhen(t *testing.T) {
	for after, want := range map[string]time.Duration{"30": 30 * time.Second, "7200": longPause, "-1": firstPause, "soon": firstPause} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			q := open(t, dir, 0, 0, nil)
			var tries []time.Time
			client := &http.Client{Transport: trip(func(req *http.Request) (*http.Response, error) {
				tries = append(tries, time.Now())
				header := http.Header{"Retry-After": {after}}
				return &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}, nil
			})}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				(&Sender{Queue: q, Client: client, URL: "http://receiver.example/write"}).Run(ctx)
			}()
			q.Add([]byte("x"), 1, time.Now())
			time.Sleep(2 * time.Minute)
			stop()
			<-ended
			if pause := tries[1].Sub(tries[0]); pause != want {
				t.Errorf("Retry-After %q: the second try is after %v, want %v", after, pause, want)
			}
		})
	}
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The test binary is both parts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "answers", "asks", "fails", "starts":
			part(os.Args[1])
			return
		}
	}
	os.Exit(m.Run())
}

// part is the life of a part. The one that asks prints the answer.
func part(role string) {
	link, err := Inherited()
	if err != nil {
		os.Exit(3)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if role == "starts" { // its start ends with an error when it is interrupted
		fmt.Fprintln(os.Stdout, "starting")
		<-stop
		link.Fail(context.Canceled)
		os.Exit(1)
	}
	go func() { <-stop; os.Exit(0) }()
	switch role {
	case "fails":
		link.Fail(errors.New("there is no disk"))
		os.Exit(1)
	case "answers":
		link.Started()
		_ = http.Serve(link, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) }))
	case "asks":
		client := http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return link.Dial(ctx) },
		}}
		for told := ""; ; time.Sleep(time.Millisecond) {
			resp, err := client.Get("http://part")
			if err != nil {
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != told {
				told = string(body)
				fmt.Fprintln(os.Stdout, told)
				link.Started()
			}
		}
	}
}

// output returns what the parts write to their standard output.
func output(t *testing.T) io.Reader {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = in
	t.Cleanup(func() { os.Stdout = stdout })
	return out
}

// A killed part is started again, and the other one reaches it. All end with the context.
func TestPartsAreStartedAgain(t *testing.T) {
	out := output(t)
	var once atomic.Int32
	s := New(Options{
		Parts:        []Part{{Name: "answers", Args: []string{"answers"}, Listens: true}, {Name: "asks", Args: []string{"asks"}}},
		Started:      func() error { once.Add(1); return nil },
		Capabilities: func() []uintptr { return nil }, Stop: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run() = %v", err)
		}
	})
	seen := map[int]bool{}
	for round := range 3 {
		if round > 0 {
			s.Signal("answers", syscall.SIGKILL)
		}
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil || seen[pid] {
			t.Fatalf("process %d answers (%v), after %v", pid, err, seen)
		}
		seen[pid] = true
	}
	cancel()
	done.Wait()
	if n := once.Load(); n != 1 {
		t.Errorf("Started was called %d times", n)
	}
}

// A part that fails at its first start ends all, with its own words.
func TestAFailedStartEndsAll(t *testing.T) {
	s := New(Options{
		Parts:        []Part{{Name: "answers", Args: []string{"answers"}, Listens: true}, {Name: "fails", Args: []string{"fails"}}},
		Capabilities: func() []uintptr { return nil }, Stop: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	err := s.Run(t.Context())
	var ended *endedError
	if !errors.As(err, &ended) || ended.Part != "fails" || !strings.HasPrefix(err.Error(), "there is no disk") {
		t.Errorf("Run() = %v", err)
	}
}

// An end while a part still starts is not a failure of the part.
func TestAnInterruptedStartIsNoFailure(t *testing.T) {
	out := output(t)
	s := New(Options{
		Parts:        []Part{{Name: "starts", Args: []string{"starts"}}},
		Capabilities: func() []uintptr { return nil }, Stop: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var said string
	if _, err := fmt.Fscan(out, &said); err != nil || said != "starting" {
		t.Fatalf("%q, %v", said, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, s)
}

// passive has Init and Shutdown but no Run. Such a service must still be shut down.
type passive struct {
	name    string
	j       *journal
	initErr error
	downErr error
}

func (p *passive) Name() string { return p.name }

func (p *passive) Init(context.Context) error {
	p.j.add("init " + p.name)
	return p.initErr
}

func (p *passive) Shutdown(context.Context) error {
	p.j.add("down " + p.name)
	return p.downErr
}

// active also runs.
type active struct {
	passive
	runErr error // returned immediately when set
	early  bool  // returns nil immediately
}

func (a *active) Run(ctx context.Context) error {
	if a.runErr != nil || a.early {
		return a.runErr
	}
	<-ctx.Done()
	a.j.add("ran " + a.name)
	return ctx.Err()
}

var errBoom = errors.New("boom")

func TestRunOrder(t *testing.T) {
	tests := []struct {
		name     string
		services func(j *journal) []Service
		want     []string
		wantErr  string
	}{
		{
			name: "an error of Init shuts down what was initialised, in reverse",
			services: func(j *journal) []Service {
				return []Service{
					&passive{name: "a", j: j}, &active{passive: passive{name: "b", j: j}},
					&passive{name: "c", j: j, initErr: errBoom}, &passive{name: "d", j: j},
				}
			},
			want:    []string{"init a", "init b", "init c", "down b", "down a"},
			wantErr: "starting c: boom",
		},
		{
			name: "an error of Run ends the others and shuts down all, also those without Run",
			services: func(j *journal) []Service {
				return []Service{
					&passive{name: "a", j: j}, &active{passive: passive{name: "b", j: j}},
					&active{passive: passive{name: "c", j: j}, runErr: errBoom},
				}
			},
			want:    []string{"init a", "init b", "init c", "ran b", "down c", "down b", "down a"},
			wantErr: "running c: boom",
		},
		{
			name: "a Run that returns early ends the group",
			services: func(j *journal) []Service {
				return []Service{
					&active{passive: passive{name: "a", j: j}},
					&active{passive: passive{name: "b", j: j}, early: true},
				}
			},
			want: []string{"init a", "init b", "ran a", "down b", "down a"},
		},
		{
			name: "errors of Shutdown do not stop the other Shutdowns",
			services: func(j *journal) []Service {
				return []Service{
					&passive{name: "a", j: j, downErr: errBoom},
					&active{passive: passive{name: "b", j: j, downErr: errBoom}, early: true},
				}
			},
			want:    []string{"init a", "init b", "down b", "down a"},
			wantErr: "stopping b: boom\nstopping a: boom",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := &journal{}
			err := NewGroup(slog.New(slog.DiscardHandler), tt.services(j)...).Run(t.Context())
			if got := errText(err); got != tt.wantErr {
				t.Errorf("Run() error = %q, want %q", got, tt.wantErr)
			}
			if tt.wantErr != "" && !errors.Is(err, errBoom) {
				t.Errorf("Run() error %v does not wrap the cause", err)
			}
			if !slices.Equal(j.lines, tt.want) {
				t.Errorf("order:\n got %s\nwant %s", strings.Join(j.lines, ", "), strings.Join(tt.want, ", "))
			}
		})
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestRunEndsWithContext(t *testing.T) {
	j := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	g := NewGroup(slog.New(slog.DiscardHandler), &active{passive: passive{name: "a", j: j}})
	g.Add(&passive{name: "b", j: j})
	var notReady *notReadyError
	if err := g.Ready(); !errors.As(err, &notReady) || notReady.Phase != "starting" {
		t.Errorf("Ready() before Run = %v, want starting", err)
	}
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	for g.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v, want nil when the context ends", err)
	}
	if err := g.Ready(); err == nil || err.Error() != "stopping" {
		t.Errorf("Ready() after Run = %v, want stopping", err)
	}
	want := []string{"init a", "init b", "ran a", "down b", "down a"}
	if !slices.Equal(j.lines, want) {
		t.Errorf("order = %v, want %v", j.lines, want)
	}
}

func TestRunWithoutRunnersWaits(t *testing.T) {
	j := &journal{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := NewGroup(slog.New(slog.DiscardHandler), &passive{name: "a", j: j}).Run(ctx); err != nil {
		t.Errorf("Run() = %v", err)
	}
	if ctx.Err() == nil {
		t.Error("Run returned before its context ended")
	}
}

func TestContextEndingDuringInitIsNoError(t *testing.T) {
	j := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewGroup(slog.New(slog.DiscardHandler), &passive{name: "a", j: j}).Run(ctx); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	if len(j.lines) != 0 {
		t.Errorf("calls = %v, want none", j.lines)
	}
}

func TestShutdownIsBounded(t *testing.T) {
	j := &journal{}
	hanging := &hanger{passive: passive{name: "b", j: j}}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hanging.release = release
		g := NewGroup(slog.New(slog.DiscardHandler), &passive{name: "a", j: j}, hanging)
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := g.Run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stopping b") {
			t.Errorf("Run() = %v, want the deadline of b", err)
		}
		if d := time.Since(start); d > ShutdownTimeout+3*time.Second {
			t.Errorf("Shutdown took %v", d)
		}
		close(release)
	})
	want := []string{"init a", "init b", "down b", "down a"}
	if !slices.Equal(j.lines, want) {
		t.Errorf("order = %v, want %v: a must be shut down although b hangs", j.lines, want)
	}
}

type hanger struct {
	passive
	release chan struct{}
}

func (h *hanger) Shutdown(context.Context) error {
	h.j.add("down " + h.name)
	<-h.release
	return nil
}

// hangingRun is a service whose Run does not end with its context.
type hangingRun struct {
	passive
	release chan struct{}
}

func (h *hangingRun) Run(context.Context) error {
	<-h.release
	return nil
}

func TestAHangingRunEndsTheOthersInOrder(t *testing.T) {
	j := &journal{}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := NewGroup(slog.New(slog.DiscardHandler), &active{passive: passive{name: "a", j: j}}, &hangingRun{passive{name: "b", j: j}, release})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		err := g.Run(ctx)
		if err == nil || !strings.Contains(err.Error(), "stopping b: it has not ended") {
			t.Errorf("Run() = %v, want an error that names b", err)
		}
		if d := time.Since(start); d > RunTimeout+2*time.Second {
			t.Errorf("ending took %v", d)
		}
		close(release)
		synctest.Wait()
	})
	want := []string{"init a", "init b", "ran a", "down a"}
	if !slices.Equal(j.lines, want) {
		t.Errorf("order = %v, want %v: b must not be shut down while it runs", j.lines, want)
	}
}

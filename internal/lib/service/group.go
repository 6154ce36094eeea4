// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// ShutdownTimeout is the maximum time of all Shutdowns together. Flushing a head block of three hours takes less.
const ShutdownTimeout = 30 * time.Second

// RunTimeout is the maximum time that all Runs together may take to return after their context has ended. A Run that does
// not return hangs, for example in a system call that nothing wakes. With 0.6 of a CPU, ending a scrape and an evaluation of
// rules took over 5 s. Both limits together stay below the 45 s of the units in deploy/systemd.
const RunTimeout = 10 * time.Second

// notReadyError names the service that the group is waiting for.
type notReadyError struct {
	Phase   string // "starting" or "stopping"
	Service string // empty before the first and after the last
}

// Error implements error.
func (e *notReadyError) Error() string {
	if e.Service == "" {
		return e.Phase
	}
	return e.Phase + ": " + e.Service
}

// Group is a list of services that are started and stopped together.
type Group struct {
	log      *slog.Logger
	services []Service
	timeout  time.Duration

	mu      sync.Mutex
	state   error           // nil when every service is initialised
	running map[string]bool // services whose Run has not returned, by name
}

// NewGroup returns a group. Services are initialised in the given order and shut down in reverse order.
func NewGroup(log *slog.Logger, services ...Service) *Group {
	return &Group{
		log:      log,
		services: services,
		timeout:  ShutdownTimeout,
		state:    &notReadyError{Phase: "starting"},
		running:  map[string]bool{},
	}
}

// Add appends services. It must not be called after Run.
func (g *Group) Add(services ...Service) { g.services = append(g.services, services...) }

// Ready returns nil when every service is initialised and none is being shut down. Otherwise it returns a
// *notReadyError.
func (g *Group) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

func (g *Group) set(state error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = state
}

// Run initialises every service in order, and runs them until ctx ends or one of them returns. It then shuts down every
// initialised service in reverse order, except those whose Run hangs. It returns the first error of Init or Run, joined with those of Shutdown. It
// returns nil when ctx ended it.
func (g *Group) Run(ctx context.Context) error {
	n, err := g.init(ctx)
	if err == nil {
		g.set(nil)
		err = g.run(ctx)
	}
	return errors.Join(err, g.shutdown(g.services[:n]))
}

// init returns how many services, counted from the first, were initialised.
func (g *Group) init(ctx context.Context) (int, error) {
	for i, s := range g.services {
		if ctx.Err() != nil {
			return i, nil
		}
		g.set(&notReadyError{Phase: "starting", Service: s.Name()})
		in, ok := s.(Initializer)
		if !ok {
			continue
		}
		start := time.Now()
		if err := in.Init(ctx); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				return i, nil
			}
			return i, fmt.Errorf("starting %s: %w", s.Name(), err)
		}
		g.log.Debug("service initialised", "service", s.Name(), "took", time.Since(start))
	}
	return len(g.services), nil
}

func (g *Group) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg   sync.WaitGroup
		once sync.Once
	)
	failed := make(chan error, 1)
	runners := 0
	for _, s := range g.services {
		r, ok := s.(Runner)
		if !ok {
			continue
		}
		runners++
		g.note(r, true)
		wg.Go(func() {
			defer cancel()
			defer g.note(r, false)
			if err := r.Run(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
				once.Do(func() { failed <- fmt.Errorf("running %s: %w", r.Name(), err) })
			}
			g.log.Debug("service ended", "service", r.Name())
		})
	}
	if runners == 0 {
		<-ctx.Done()
	}
	hanging := g.wait(ctx, &wg)
	select {
	case err := <-failed:
		return errors.Join(err, hanging)
	default:
		return hanging
	}
}

func (g *Group) note(r Runner, running bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if running {
		g.running[r.Name()] = true
	} else {
		delete(g.running, r.Name())
	}
}

// wait waits until every Run has returned, and for at most RunTimeout after ctx has ended. It returns which Runs hang.
func (g *Group) wait(ctx context.Context, all *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	<-ctx.Done()
	select {
	case <-ended:
		return nil
	case <-time.After(RunTimeout):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(g.running)) {
		errs = append(errs, fmt.Errorf("stopping %s: it has not ended after %v", name, RunTimeout))
	}
	return errors.Join(errs...)
}

// hangs reports whether the Run of a service has not returned.
func (g *Group) hangs(s Service) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running[s.Name()]
}

func (g *Group) shutdown(initialised []Service) error {
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	g.set(&notReadyError{Phase: "stopping"})
	var errs []error
	for i := len(initialised) - 1; i >= 0; i-- {
		s, ok := initialised[i].(Shutdowner)
		if !ok || g.hangs(s) {
			continue
		}
		g.set(&notReadyError{Phase: "stopping", Service: s.Name()})
		start := time.Now()
		if err := bounded(ctx, s.Shutdown); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", s.Name(), err))
		}
		g.log.Debug("service shut down", "service", s.Name(), "took", time.Since(start))
	}
	g.set(&notReadyError{Phase: "stopping"})
	return errors.Join(errs...)
}

// bounded calls f and stops waiting for it when ctx ends. A service that hangs then does not prevent the shutdown of
// those before it. They get an ended context and should be quick.
func bounded(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(time.Second):
		return fmt.Errorf("timed out: %w", ctx.Err())
	}
}

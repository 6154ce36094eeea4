// SPDX-License-Identifier: Apache-2.0

// Package ondemand changes what the agent measures while it runs, for a limited time: it switches on watching of processes, timing,
// exact counting and more samples of stacks, and switches off single probes.
//
// Changes modify the configuration and are kept in memory only, so a restart returns to the configuration. The package does
// not depend on how measurements work: it passes the current state to one function.
package ondemand

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Kind is what a change does.
type Kind string

// The kinds. They are label values.
const (
	Watch   Kind = "watch"   // measures each process that matches a rule, as the key watch does
	Timing  Kind = "timing"  // measures the time of system calls, as the key syscalls.time does
	Profile Kind = "profile" // samples stacks more often, 99 times a second and CPU, or stacks of events
	Exact   Kind = "exact"   // counts all events at any cost, as overhead.budget: 100% does
	Pause   Kind = "pause"   // switches one probe off
)

func kinds() []Kind { return []Kind{Watch, Timing, Exact, Profile, Pause} }

const (
	// maxChanges is the maximum number of changes that are on at the same time.
	maxChanges = 16
	// shortest is the shortest time for which something is switched on.
	shortest = time.Second
	// maxBegun is the maximum number of changes that begin within a minute. Each one makes the agent read all processes.
	maxBegun = 60
	// maxRule and maxReason are the maximum lengths of a rule and of a reason in bytes.
	maxRule   = 256
	maxReason = 256
)

// State contains all changes of the configuration.
type State struct {
	Watch         []watch.Rule // sorted by text, without duplicates
	Timing, Exact bool
	Profile       bool
	Event         string               // whose stacks are sampled; empty for none
	Paused        map[string]time.Time // probes that are switched off, and until when
}

// Options configure a Control.
type Options struct {
	Allowed bool          // changes are accepted
	Longest time.Duration // longest time for which something is switched on
	Machine string        // name of the machine, for answers
	// Apply applies a state. It must return soon: the ends of other changes wait for it.
	Apply func(State)
	// Lacks returns the reason why this machine does not support a kind, of an event for Profile, or nil. A nil function means that it
	// can do all.
	Lacks func(kind Kind, event string) error
	// Events are those whose stacks can be sampled, besides CPU time.
	Events []string
	// Probes lists the probes that can be switched off. Pauses returns the reason why a probe cannot be, or nil. Functions that
	// are nil mean that there is none.
	Probes func() []string
	Pauses func(probe string) error
	Log    *slog.Logger
}

// change is one thing that is switched on.
type change struct {
	id         string
	kind       Kind
	rule       watch.Rule // of a Watch
	event      string     // of a Profile; empty for CPU time
	probe      string     // of a Pause
	reason     string     // why, in one line; may be empty
	by         string     // who requested it; empty if unknown
	verified   bool       // by is proven
	begin, end time.Time  // with the monotonic clock, which cannot be set
}

// Control stores the changes that are in effect. It is a service, a collector, and the handler of /api/control.
type Control struct {
	opts     Options
	families families
	routes   *http.ServeMux
	woken    chan struct{} // the time of the next end may have changed

	mu     sync.Mutex // protects the fields below
	on     []change   // in the order in which they were switched on
	counts map[counted]uint64
	begun  []time.Time // of the changes that began within the last minute

	applying sync.Mutex // held while the state is applied, so that an older one never replaces a newer one
}

// New returns a Control with nothing switched on.
func New(o Options) *Control {
	c := &Control{opts: o, families: newFamilies(), woken: make(chan struct{}, 1), counts: map[counted]uint64{}}
	c.routes = c.newRoutes()
	return c
}

// Name implements service.Service and collector.Collector.
func (c *Control) Name() string { return "ondemand" }

// The errors of add and end.
var (
	errNotAllowed = errors.New("this agent allows no changes: set control.enabled in its configuration (--control.enabled) to allow them")
	errFull       = fmt.Errorf("%d changes are on, which is the maximum: end one (DELETE /api/control/ID), or wait for an end", maxChanges)
	errTooFast    = fmt.Errorf("%d changes have begun within a minute, which is the maximum: try again in a while", maxBegun)
	errOther      = errors.New("another event")
	errUnknown    = errors.New("no change with this ID is on: it has ended, or the agent has started again")
)

// add switches something on, or returns why not. The change has its kind, its reason and who requested it.
func (c *Control) add(one change, rule string, length time.Duration) (change, error) {
	one.id = rand.Text()[:10]
	if err := c.check(one.kind, rule, length, &one); err != nil {
		return one, err
	}
	c.mu.Lock()
	now := time.Now()
	one.begin, one.end = now, now.Add(length)
	err := c.refusal(now, one.event)
	if err == nil {
		c.on, c.begun = append(c.on, one), append(c.begun, now)
		c.counts[counted{one.kind, begun}]++
	}
	c.mu.Unlock()
	if err != nil {
		return one, err
	}
	c.apply()
	c.opts.Log.Info("switched on", "change", one.id, "kind", string(one.kind), "rule", rule, "event", one.event, "for", length, "by", one.by, "by_verified", one.verified, "reason", one.reason)
	c.wake()
	return one, nil
}

// refusal returns why no further change can begin now, or nil. The caller holds the lock.
func (c *Control) refusal(now time.Time, event string) error {
	for len(c.begun) > 0 && now.Sub(c.begun[0]) >= time.Minute {
		c.begun = c.begun[1:]
	}
	on := c.current(now)
	switch {
	case len(c.begun) >= maxBegun:
		return errTooFast
	case len(on) >= maxChanges:
		return errFull
	}
	for _, one := range on {
		if event != "" && one.event != "" && one.event != event {
			return fmt.Errorf("%w: stacks of %s are sampled until %s, and those of one event at a time: end that change, or wait", errOther, one.event, one.end.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// check returns the reason why a change is refused, and parses its rule.
func (c *Control) check(kind Kind, rule string, length time.Duration, one *change) (err error) {
	switch {
	case !c.opts.Allowed:
		return errNotAllowed
	case !slices.Contains(kinds(), kind):
		return fmt.Errorf("kind %.40q: use one of %s, %s, %s, %s, %s", kind, Watch, Timing, Exact, Profile, Pause)
	case one.event != "" && kind != Profile:
		return fmt.Errorf("only a profile has an event, and the kind is %s", kind)
	case one.event != "" && !slices.Contains(c.opts.Events, one.event):
		return fmt.Errorf("event %.40q: use one of cpu, %s", one.event, strings.Join(c.opts.Events, ", "))
	case kind == Watch && rule == "":
		return errors.New("a watch needs a rule, for example comm=redis-server")
	case kind == Pause && rule == "":
		return errors.New("a pause needs the name of a probe as its rule, for example page_fault_user")
	case kind != Watch && kind != Pause && rule != "":
		return fmt.Errorf("only a watch and a pause have a rule, and the kind is %s", kind)
	case len(rule) > maxRule:
		return fmt.Errorf("the rule has %d bytes; the maximum is %d", len(rule), maxRule)
	case !text.IsLabel(rule):
		return fmt.Errorf("rule %q contains a control character or is not UTF-8", rule)
	case len(one.reason) > maxReason:
		return fmt.Errorf("the reason has %d bytes; the maximum is %d", len(one.reason), maxReason)
	case !text.IsLabel(one.reason):
		return errors.New("the reason contains a control character or is not UTF-8: write one line")
	case length < shortest || length > c.opts.Longest:
		return fmt.Errorf("seconds=%g is out of range: use %g to %g (control.max-duration)", length.Seconds(), shortest.Seconds(), c.opts.Longest.Seconds())
	}
	if kind == Watch {
		if one.rule, err = watch.Parse(rule); err != nil {
			return err
		}
	}
	if kind == Pause {
		if c.opts.Pauses == nil {
			return errors.New("this agent has no probes")
		}
		one.probe = rule
		if reason := c.opts.Pauses(rule); reason != nil {
			return &lackError{kind, reason}
		}
		return nil
	}
	if c.opts.Lacks == nil {
		return nil
	}
	if reason := c.opts.Lacks(kind, one.event); reason != nil {
		return &lackError{kind, reason}
	}
	return nil
}

// lackError means that this machine does not support the requested kind.
type lackError struct {
	kind   Kind
	reason error
}

func (e *lackError) Error() string {
	return fmt.Sprintf("this machine cannot do that (%s): %v", e.kind, e.reason)
}

func (e *lackError) Unwrap() error { return e.reason }

// end switches a change off before its time.
func (c *Control) end(id, by string) error {
	if !c.opts.Allowed {
		return errNotAllowed
	}
	c.mu.Lock()
	at := slices.IndexFunc(c.on, func(one change) bool { return one.id == id && one.end.After(time.Now()) })
	if at >= 0 {
		c.counts[counted{c.on[at].kind, ended}]++
		c.on = slices.Delete(c.on, at, at+1)
	}
	c.mu.Unlock()
	if at < 0 {
		return errUnknown
	}
	c.apply()
	c.opts.Log.Info("switched off", "change", id, "by", by)
	return nil
}

// current returns the changes whose time has not passed. The caller holds the lock.
func (c *Control) current(now time.Time) []change {
	var on []change
	for _, one := range c.on {
		if one.end.After(now) {
			on = append(on, one)
		}
	}
	return on
}

// list returns the changes in effect.
func (c *Control) list(now time.Time) []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current(now)
}

// expire removes the changes whose time has passed, and returns the time until the next end, or false without one.
func (c *Control) expire(now time.Time) (wait time.Duration, any bool) {
	c.mu.Lock()
	on := c.current(now)
	var over []change
	for _, one := range c.on {
		if !one.end.After(now) {
			over = append(over, one)
			c.counts[counted{one.kind, expired}]++
		}
	}
	c.on = on
	for i, one := range on {
		if left := one.end.Sub(now); i == 0 || left < wait {
			wait, any = left, true
		}
	}
	c.mu.Unlock()
	if len(over) > 0 {
		c.apply()
	}
	for _, one := range over {
		c.opts.Log.Info("switched off", "change", one.id, "kind", string(one.kind), "after", now.Sub(one.begin).Round(time.Millisecond))
	}
	return wait, any
}

// apply makes the changes in effect the current state.
func (c *Control) apply() {
	c.applying.Lock()
	defer c.applying.Unlock()
	if c.opts.Apply != nil {
		c.opts.Apply(stateOf(c.list(time.Now())))
	}
}

func stateOf(on []change) (s State) {
	seen := map[string]bool{}
	for _, one := range on {
		switch one.kind {
		case Watch:
			if rule := one.rule.String(); !seen[rule] {
				seen[rule] = true
				s.Watch = append(s.Watch, one.rule)
			}
		case Timing:
			s.Timing = true
		case Exact:
			s.Exact = true
		case Profile:
			if s.Event = cmp.Or(one.event, s.Event); one.event == "" {
				s.Profile = true
			}
		case Pause:
			if s.Paused == nil {
				s.Paused = map[string]time.Time{}
			}
			if one.end.After(s.Paused[one.probe]) {
				s.Paused[one.probe] = one.end
			}
		}
	}
	slices.SortFunc(s.Watch, func(a, b watch.Rule) int { return cmp.Compare(a.String(), b.String()) })
	return s
}

func (c *Control) wake() {
	select {
	case c.woken <- struct{}{}:
	default: // a wakeup is pending
	}
}

// Run implements service.Runner. It ends each change at its time. No reader of the list and no request can delay it.
func (c *Control) Run(ctx context.Context) error {
	for {
		var due <-chan time.Time
		if wait, any := c.expire(time.Now()); any {
			due = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.woken:
		case <-due:
		}
	}
}

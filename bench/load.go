// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// The server runs on one core and the client on another, so that the server's probes take no time from the client.
const (
	serverCore = 0
	clientCore = 1
)

// sample is one window of one mode.
type sample struct {
	rate     float64 // operations per second
	cpuPerOp float64 // server CPU seconds per operation
	use      use     // of the watcher
}

// compare runs one load under every mode, interleaved, and compares the modes within each round.
func compare(ctx context.Context, progress io.Writer, o options, name, dir string) (map[string][]sample, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	u, err := loadNamed(name).start(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer u.stop()

	samples := map[string][]sample{}
	for round := range o.rounds {
		for _, i := range rand.Perm(len(o.modes)) {
			s, err := u.window(ctx, o, modeNamed(o.modes[i]))
			if err != nil {
				return nil, fmt.Errorf("mode %s: %w", o.modes[i], err)
			}
			samples[o.modes[i]] = append(samples[o.modes[i]], s)
		}
		fmt.Fprintf(progress, "%s: round %d of %d\n", name, round+1, o.rounds)
	}
	return samples, nil
}

// underLoad is a server with its client. The client is nil when the server makes its own load.
type underLoad struct {
	load
	dir, port      string
	server, client *child
}

func (l load) start(ctx context.Context, dir string) (*underLoad, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	args, err := l.server(dir, port)
	if err != nil {
		return nil, err
	}
	u := &underLoad{load: l, dir: dir, port: port}
	if u.server, err = startOn(ctx, serverCore, args[0], args[1:]...); err != nil {
		return nil, err
	}
	if err := u.waitForServer(ctx); err != nil {
		u.stop()
		return nil, err
	}
	if l.client != nil {
		args = l.client(port)
		if u.client, err = startOn(ctx, clientCore, args[0], args[1:]...); err != nil {
			u.stop()
			return nil, err
		}
	}
	return u, clock.Sleep(ctx, time.Second)
}

func (u *underLoad) waitForServer(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := u.answers(ctx)
		if err == nil {
			return nil
		}
		if tries > 200 || ctx.Err() != nil {
			return fmt.Errorf("waiting for the server: %w\n%s", err, u.server.output())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (u *underLoad) answers(ctx context.Context) error {
	if u.ready != nil {
		return u.ready(ctx, u.port)
	}
	_, err := u.count(ctx, u)
	return err
}

func (u *underLoad) stop() {
	if u.client != nil {
		u.client.stop()
	}
	u.server.stop()
}

// window measures one mode for one window.
func (u *underLoad) window(ctx context.Context, o options, m mode) (sample, error) {
	var s sample
	dir, err := os.MkdirTemp(u.dir, m.name)
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	w, err := m.start(ctx, o, target{pids: u.server.pids(), dir: dir})
	if err != nil {
		return s, err
	}
	defer w.stop()
	if err := clock.Sleep(ctx, o.settled(m)); err != nil {
		return s, err
	}
	meter, err := w.meter()
	if err != nil {
		return s, err
	}
	if err := u.measure(ctx, o.window, &s); err != nil {
		return s, err
	}
	s.use, err = meter.read(ctx)
	return s, err
}

// settled returns how long a mode runs before it is measured.
func (o options) settled(m mode) time.Duration {
	if o.quick {
		return o.settle
	}
	return max(o.settle, m.warm)
}

func (u *underLoad) measure(ctx context.Context, d time.Duration, s *sample) error {
	ops, cpu, at, err := u.read(ctx)
	if err != nil {
		return err
	}
	if err := clock.Sleep(ctx, d); err != nil {
		return err
	}
	opsEnd, cpuEnd, atEnd, err := u.read(ctx)
	if err != nil {
		return err
	}
	if opsEnd <= ops {
		return fmt.Errorf("%s makes no progress:\n%s", u.name, u.server.output())
	}
	s.rate = (opsEnd - ops) / atEnd.Sub(at).Seconds()
	s.cpuPerOp = (cpuEnd - cpu) / (opsEnd - ops)
	return nil
}

func (u *underLoad) read(ctx context.Context) (ops, cpu float64, at time.Time, err error) {
	if ops, err = u.count(ctx, u); err != nil {
		return ops, cpu, at, err
	}
	at = time.Now()
	cpu, err = u.server.cpu()
	return ops, cpu, at, err
}

// measureIdle measures every mode on an otherwise idle machine.
func measureIdle(ctx context.Context, progress io.Writer, o options, dir string) (map[string][]sample, error) {
	samples := map[string][]sample{}
	for _, name := range o.modes {
		fmt.Fprintf(progress, "at rest: %s\n", name)
		s, err := sampleIdle(ctx, o, modeNamed(name), filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("mode %s at rest: %w", name, err)
		}
		samples[name] = []sample{s}
	}
	return samples, nil
}

func sampleIdle(ctx context.Context, o options, m mode, dir string) (sample, error) {
	var s sample
	w, err := m.start(ctx, o, target{dir: dir})
	if err != nil {
		return s, err
	}
	defer w.stop()
	if err := clock.Sleep(ctx, o.settled(m)); err != nil {
		return s, err
	}
	meter, err := w.meter()
	if err != nil {
		return s, err
	}
	if err := clock.Sleep(ctx, o.idle); err != nil {
		return s, err
	}
	s.use, err = meter.read(ctx)
	return s, err
}

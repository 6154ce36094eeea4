// SPDX-License-Identifier: Apache-2.0

// Package systemd notifies the service manager when the process is ready and alive (sd_notify(3)).
//
// It does not check health: the caller passes a function. github.com/coreos/go-systemd opens a socket for each message,
// which the confined process may not do. This package keeps one socket that it opens at the start.
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/lib/service"
)

// Environment variables of sd_notify(3) and sd_watchdog_enabled(3). WATCHDOG_PID is not read: in teescope up the
// process that stores is not the main process, and the unit allows all of them to notify.
const (
	socketVariable   = "NOTIFY_SOCKET"
	watchdogVariable = "WATCHDOG_USEC"
)

// Options configure a [Notifier].
type Options struct {
	Getenv   func(string) string
	Confined <-chan struct{} // closed when the process has dropped its privileges; ready is said only then
	Healthy  func() error    // nil as long as the process works
	Log      *slog.Logger
}

// Notifier is a service. It must be the last one that is initialised, because its Run says that the process is ready.
type Notifier struct {
	opts     Options
	conn     net.Conn      // nil without a service manager
	watchdog time.Duration // 0 without a watchdog
}

// New returns a notifier. It does nothing without a service manager that waits for messages.
func New(o Options) *Notifier { return &Notifier{opts: o} }

// Name implements service.Service.
func (*Notifier) Name() string { return "service manager" }

// Init opens the socket while that is still permitted.
func (n *Notifier) Init(ctx context.Context) error {
	name := n.opts.Getenv(socketVariable)
	if name == "" {
		return nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unixgram", name)
	if err != nil {
		return fmt.Errorf("connecting to the service manager by %s=%q: %w", socketVariable, name, err)
	}
	n.conn = conn
	if s := n.opts.Getenv(watchdogVariable); s != "" {
		us, err := strconv.ParseInt(s, 10, 64)
		if err != nil || us <= 0 {
			_ = conn.Close()
			return fmt.Errorf("reading %s=%q: it must be a positive number of microseconds", watchdogVariable, s)
		}
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return nil
}

// Run says that the process is ready, and from then on that it is alive as long as it is healthy.
func (n *Notifier) Run(ctx context.Context) error {
	if n.conn == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case <-n.opts.Confined:
	case <-ctx.Done():
		return nil
	}
	n.send("READY=1")
	if n.watchdog == 0 {
		<-ctx.Done()
		return nil
	}
	service.Every(ctx, n.watchdog/3, func() {
		if err := n.opts.Healthy(); err != nil {
			// Without the message the manager ends and restarts the process, and logs this status.
			n.opts.Log.Error("not healthy: the service manager will restart the process", "reason", err)
			n.send("STATUS=not healthy: " + err.Error())
		} else {
			n.send("WATCHDOG=1")
		}
	})
	return nil
}

// Shutdown closes the socket. STOPPING=1 is not sent: in teescope up the process that stores may end and be started again,
// while the service continues.
func (n *Notifier) Shutdown(context.Context) error {
	if n.conn == nil {
		return nil
	}
	return n.conn.Close()
}

// send does not block: a manager that reads nothing must not hold the process up, and it then misses a message.
func (n *Notifier) send(state string) {
	_ = n.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := n.conn.Write([]byte(state)); err != nil {
		n.opts.Log.Warn("the service manager could not be notified", "state", state, "reason", err)
	}
}

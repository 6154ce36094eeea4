// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/holder"
)

// ListenError explains why listening on an address failed and what to do.
type ListenError struct {
	Addr   string
	Holder string // "process 12 (redis-server)", or empty
	Err    error
}

// Error implements error.
func (e *ListenError) Error() string {
	switch {
	case errors.Is(e.Err, unix.EADDRINUSE) && e.Holder != "":
		return fmt.Sprintf("listening on %s: %s is listening there; stop it or choose another address with --listen, for example --listen 127.0.0.1:9751", e.Addr, e.Holder)
	case errors.Is(e.Err, unix.EADDRINUSE):
		return fmt.Sprintf("listening on %s: another process is listening there; stop it or choose another address with --listen, for example --listen 127.0.0.1:9751", e.Addr)
	case errors.Is(e.Err, unix.EACCES):
		return fmt.Sprintf("listening on %s: a port below 1024 needs CAP_NET_BIND_SERVICE; choose another with --listen, for example --listen 127.0.0.1:9750", e.Addr)
	case errors.Is(e.Err, unix.EADDRNOTAVAIL):
		return fmt.Sprintf("listening on %s: this host has no such address; see \"ip address\" for those it has, and choose one with --listen", e.Addr)
	}
	return fmt.Sprintf("listening on %s: %v; choose another address with --listen", e.Addr, e.Err)
}

// Unwrap returns the cause.
func (e *ListenError) Unwrap() error { return e.Err }

func listenError(addr string, err error) error {
	e := &ListenError{Addr: addr, Err: err}
	if _, port, splitErr := net.SplitHostPort(addr); splitErr == nil && errors.Is(err, unix.EADDRINUSE) {
		if n, convErr := strconv.Atoi(port); convErr == nil {
			e.Holder = holder.OfPort("/proc", n).String()
		}
	}
	return e
}

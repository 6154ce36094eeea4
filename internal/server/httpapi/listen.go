// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/holder"
)

// socketPrefix begins the address of a unix socket.
const socketPrefix = "unix:"

// IsSocket reports whether an address to listen on is a unix socket.
func IsSocket(addr string) bool { return strings.HasPrefix(addr, socketPrefix) }

// Socket has the properties of a unix socket.
type Socket struct {
	Mode  os.FileMode // permissions
	Group string      // name or number of its group; empty for that of the process
}

// unprotectedError is returned for an address that others reach, without authentication.
type unprotectedError struct{ Addr string }

// Error implements error.
func (e *unprotectedError) Error() string {
	return fmt.Sprintf("listening on %s: everyone who reaches this address could read what this machine runs, without a password\n"+
		"Require passwords or client certificates with --web.config-file (docs/user/access.md has an example), listen on\n"+
		"127.0.0.1 or unix:PATH only, or add --web.insecure if something else decides who reaches it", e.Addr)
}

// listen listens on the configured address.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	if IsSocket(s.opts.Listen) {
		if s.opts.Inherited != nil {
			if l := s.opts.Inherited(); l != nil && socketPrefix+l.Addr().String() == s.opts.Listen {
				return l, nil
			}
		}
		return ListenSocket(ctx, s.opts.Listen, s.opts.Socket)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opts.Listen)
	if err != nil {
		return nil, listenError(s.opts.Listen, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !s.config.start.authenticates() && !s.opts.Insecure {
		_ = l.Close()
		return nil, &unprotectedError{s.opts.Listen}
	}
	return l, nil
}

// ListenSocket listens on a unix socket, unix:PATH. Only the user of the process may connect until it has its mode and
// group.
func ListenSocket(ctx context.Context, addr string, o Socket) (*net.UnixListener, error) {
	path := strings.TrimPrefix(addr, socketPrefix)
	wrong := func(err error) (*net.UnixListener, error) {
		return nil, fmt.Errorf("listening on %s%s: %w", socketPrefix, path, err)
	}
	if err := removeStale(ctx, path); err != nil {
		return wrong(err)
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(old)
	if err != nil {
		return wrong(err)
	}
	if err := own(path, o); err != nil {
		_ = l.Close()
		return wrong(err)
	}
	return l, nil
}

func own(path string, o Socket) error {
	if o.Group != "" {
		id, err := groupID(o.Group)
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, id); err != nil {
			return err
		}
	}
	return os.Chmod(path, o.Mode)
}

func groupID(name string) (int, error) {
	if id, err := strconv.Atoi(name); err == nil {
		return id, nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("the group %q: %w", name, err)
	}
	return strconv.Atoi(group.Gid)
}

// removeStale removes the socket of a process that has ended. It removes nothing else.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return errors.New("there is a file that is not a socket; choose another path with --listen")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return errListening
	case errors.Is(err, unix.EAGAIN): // its queue of connections is full
		return errListening
	case errors.Is(err, unix.EPROTOTYPE):
		return errors.New("there is a socket of another kind; choose another path with --listen")
	case errors.Is(err, unix.ECONNREFUSED):
		return unix.Unlink(path) // which removes no directory, unlike os.Remove
	}
	return err
}

var errListening = errors.New("another process is listening there; stop it or choose another path with --listen")

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

// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrNobody reports that the part that accepts connections does not run.
var ErrNobody = errors.New("its process does not run")

// The descriptors of a part after the standard ones: its socket to the supervisor, and [Part.Listener].
const (
	inherited         = 3
	inheritedListener = 4
)

// Link is a part's connection to the supervisor. It is a net.Listener for the part that listens.
type Link struct {
	conn  *net.UnixConn
	ends  chan struct{} // closed when the supervisor has ended or the link was closed
	conns chan net.Conn // nil stands for a refusal

	dialing chan struct{} // holds a value while a connection is requested
	once    sync.Once
}

// Inherited returns the link of a process that a supervisor has started.
func Inherited() (*Link, error) {
	unix.CloseOnExec(inherited)
	conn, err := unixConn(os.NewFile(inherited, "supervisor"))
	if err != nil {
		return nil, err
	}
	l := &Link{conn: conn, ends: make(chan struct{}), conns: make(chan net.Conn, 16), dialing: make(chan struct{}, 1)}
	go l.receive()
	return l, nil
}

// InheritedListener returns the listener that the supervisor has passed on, or nil. Each call returns another one for the
// same socket. Without such a listener the descriptor may be of the runtime or of anything else, and is left alone.
func InheritedListener() net.Listener {
	if accepts, err := unix.GetsockoptInt(inheritedListener, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || accepts == 0 {
		return nil
	}
	fd, err := unix.FcntlInt(inheritedListener, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil
	}
	return l
}

// Ended is closed when the supervisor has ended.
func (l *Link) Ended() <-chan struct{} { return l.ends }

// Started reports to the supervisor that the part has started.
func (l *Link) Started() { _, _ = l.conn.Write([]byte{sayStarted}) } // without a supervisor the part ends

// Fail reports to the supervisor why the part ends.
func (l *Link) Fail(reason error) {
	text := reason.Error()
	_, _ = l.conn.Write(append([]byte{sayReason}, text[:min(len(text), maxMessage-1)]...)) // the same
}

func (l *Link) receive() {
	defer l.end()
	message, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		n, r, _, _, err := l.conn.ReadMsgUnix(message, rights)
		if err != nil || n == 0 {
			return
		}
		var c net.Conn
		if message[0] == sayConnect {
			c = received(rights[:r])
		}
		select {
		case l.conns <- c:
		case <-l.ends:
			return
		}
	}
}

// received returns the connection in a message, or nil.
func received(rights []byte) net.Conn {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	c, err := unixConn(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		return nil
	}
	return c
}

// Dial connects to the part that listens.
func (l *Link) Dial(ctx context.Context) (net.Conn, error) {
	select {
	case l.dialing <- struct{}{}:
		defer func() { <-l.dialing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.discard()
	if _, err := l.conn.Write([]byte{sayConnect}); err != nil {
		return nil, err
	}
	select {
	case c := <-l.conns:
		if c == nil {
			return nil, ErrNobody
		}
		return c, nil
	case <-l.ends:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// discard closes connections that came after their caller had given up.
func (l *Link) discard() {
	for {
		select {
		case c := <-l.conns:
			if c != nil {
				_ = c.Close() // nothing was written
			}
		default:
			return
		}
	}
}

// Accept implements net.Listener.
func (l *Link) Accept() (net.Conn, error) {
	for {
		select {
		case c := <-l.conns:
			if c != nil {
				return c, nil
			}
		case <-l.ends:
			return nil, net.ErrClosed
		}
	}
}

func (l *Link) end() { l.once.Do(func() { close(l.ends) }) }

// Close implements net.Listener. It leaves the socket open, so that a reason can still be sent.
func (l *Link) Close() error { l.end(); return nil }

// Addr implements net.Listener.
func (l *Link) Addr() net.Addr { return l.conn.LocalAddr() }

// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A message is one byte and, in the last case, a text. A connection comes with the message that announces it.
const (
	sayStarted = 's' // from a part: it has started
	sayConnect = 'c' // from a part: it needs a connection; to a part: here is one
	sayNobody  = 'n' // to a part: the other part accepts no connection
	sayReason  = 'r' // from a part: why it ends
)

// maxMessage is the maximum length of a message. A longer reason is cut.
const maxMessage = 16 << 10

// pair returns two connected sockets without a name.
func pair(kind int) (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a pair of sockets: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// unixConn makes a connection of a socket, which it closes.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("using an inherited socket: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close() // nothing was written
		return nil, errors.New("using an inherited socket: it is not a unix socket")
	}
	return u, nil
}

// control is the supervisor's end of the socket to a part.
type control struct {
	conn    *net.UnixConn
	started atomic.Bool // this process of the part has started
	done    chan struct{}
	reason  string // the last message of the part; valid when done is closed
}

func newControl(f *os.File, part Part, s *Supervisor) (*control, error) {
	conn, err := unixConn(f)
	if err != nil {
		return nil, err
	}
	c := &control{conn: conn, done: make(chan struct{})}
	go c.serve(part, s)
	return c, nil
}

// serve answers a part until its end.
func (c *control) serve(part Part, s *Supervisor) {
	defer close(c.done)
	message := make([]byte, maxMessage)
	for {
		n, err := c.conn.Read(message)
		if err != nil || n == 0 {
			return
		}
		switch message[0] {
		case sayStarted:
			c.started.Store(true)
			s.markStarted(part.Name)
		case sayReason:
			c.reason = string(message[1:n])
		case sayConnect:
			if err := connect(c, s.listener()); err != nil {
				_, _ = c.conn.Write([]byte{sayNobody}) // fails only when the part has ended
			}
		}
	}
}

// connect makes a connection between two parts.
func connect(from, to *control) error {
	if to == nil {
		return os.ErrNotExist
	}
	a, b, err := pair(syscall.SOCK_STREAM)
	if err != nil {
		return err
	}
	defer a.Close()
	defer b.Close()
	if err := to.pass(b); err != nil {
		return err
	}
	return from.pass(a)
}

// pass sends a connection to the part.
func (c *control) pass(f *os.File) error {
	_, _, err := c.conn.WriteMsgUnix([]byte{sayConnect}, unix.UnixRights(int(f.Fd())), nil)
	return err
}

// finish closes the socket after all that the part has said was read.
func (c *control) finish() string {
	<-c.done
	_ = c.conn.Close() // nothing is lost
	return c.reason
}

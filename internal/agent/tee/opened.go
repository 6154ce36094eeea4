// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Opened reports that a program has opened a device that creates enclaves. It does not know which one (inotify(7)). Nothing waits for
// it. A container with a device node of its own is not noticed.
type Opened struct {
	// C has a value after one or more openings. Until it is received, further openings cost nothing.
	C      chan struct{}
	file   *os.File
	closed chan struct{}
}

// NewOpened watches the devices of this machine. It returns nil if it has none.
func NewOpened(r Roots) (*Opened, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watching the devices of enclaves: %w", err)
	}
	watched := 0
	var errs []error
	for _, node := range sgxNodes {
		switch _, err := unix.InotifyAddWatch(fd, filepath.Join(r.Dev, node), unix.IN_OPEN); {
		case err == nil:
			watched++
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR):
			errs = append(errs, fmt.Errorf("watching the device %s: %w", node, err))
		}
	}
	if watched == 0 {
		return nil, errors.Join(append(errs, unix.Close(fd))...)
	}
	return &Opened{C: make(chan struct{}), file: os.NewFile(uintptr(fd), "inotify"), closed: make(chan struct{})}, nil
}

// Run reports until Close is called. It reads no further events while a value waits. The kernel merges equal events, and the number of
// those that wait is limited.
func (o *Opened) Run() {
	var events [4096]byte
	for {
		if _, err := o.file.Read(events[:]); err != nil {
			return // it is closed
		}
		select {
		case o.C <- struct{}{}:
		case <-o.closed:
			return
		}
	}
}

// Close ends Run.
func (o *Opened) Close() error {
	if err := o.file.Close(); err != nil {
		return fmt.Errorf("ending the watch of the devices of enclaves: %w", err)
	}
	close(o.closed)
	return nil
}

// young is the age of a program up to which it is inspected again when a device is opened. An older one has another chance: it runs for
// longer than a scan takes.
const young = 10 * time.Second

// Hurry makes the next Due return the young programs that have no enclave, because one of them may have opened a device.
func (d *Detector) Hurry() {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.seen {
		if !s.found.enclave && now.Sub(s.since) < young {
			s.next = now
		}
	}
}

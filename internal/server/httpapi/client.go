// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/clientname"
)

// clientOf names the client of a connection: that of its address, or the user at a unix socket.
func clientOf(conn net.Conn) string {
	if local, ok := conn.(*net.UnixConn); ok {
		return userOf(local)
	}
	return clientname.Of(conn.RemoteAddr().String())
}

func userOf(conn *net.UnixConn) string {
	name := "unknown user"
	raw, err := conn.SyscallConn()
	if err != nil {
		return name
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			name = "user " + strconv.FormatUint(uint64(cred.Uid), 10)
		}
	})
	return name
}

// maxDebt bounds the debt of a bucket, so that what a client did is forgotten soon after it stops.
const maxDebt = 10 * time.Second

// bucket is a token bucket. It starts full. The number of tokens may be negative; it grows by rate until it is positive
// again.
type bucket struct {
	rate, most float64 // tokens per second; the most that it holds

	mu    sync.Mutex
	spent float64 // missing from most
	at    time.Time
}

func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.spent = max(0, b.spent-passed*b.rate)
		b.at = now
	}
}

// take takes tokens and returns how long to wait until they exist.
func (b *bucket) take(now time.Time, n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	b.spent = min(b.spent+n, b.most+b.rate*maxDebt.Seconds())
	return max(0, time.Duration((b.spent-b.most)/b.rate*float64(time.Second)))
}

// tryTake takes tokens if they exist.
func (b *bucket) tryTake(now time.Time, n float64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	if b.spent+n > b.most {
		return false
	}
	b.spent += n
	return true
}

// wait returns how long it takes until the bucket is out of debt.
func (b *bucket) wait(now time.Time) time.Duration { return b.take(now, 0) }

func (b *bucket) full(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill(now)
	return b.spent == 0
}

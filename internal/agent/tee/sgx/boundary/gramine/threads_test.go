// SPDX-License-Identifier: Apache-2.0

package gramine

import (
	"bytes"
	"io"
	"testing"
)

// passes counts the passes over the threads of the machine.
type passes int

func (p *passes) Open() (io.ReadCloser, error) { // one thread
	*p++
	return io.NopCloser(bytes.NewReader(make([]byte, 24))), nil
}

// Without a process of Gramine, the threads of other processes cost nothing.
func TestThreadsAreListedOnlyForGramine(t *testing.T) {
	for runs, want := range map[bool]passes{false: 0, true: 1} {
		var n passes
		g := &Counters{threads: &n, absent: func() bool { return !runs }}
		threads, err := g.live()
		if err != nil || n != want || len(threads) != int(want) {
			t.Errorf("with Gramine: %v: %d passes, %d threads, %v", runs, n, len(threads), err)
		}
	}
}

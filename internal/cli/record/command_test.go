// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCommandIsInterruptedAndKilled(t *testing.T) {
	s := &stops{first: make(chan struct{}), second: make(chan struct{}), signal: syscall.SIGTERM}
	var out bytes.Buffer
	c, err := launch([]string{"sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"}, nil, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	for len(c.out.Bytes()) == 0 {
		time.Sleep(time.Millisecond)
	}
	close(s.first)
	time.AfterFunc(200*time.Millisecond, func() { close(s.second) })
	c.wait(s)
	if c.status() != 128+9 || !c.stopped || c.wall < 200*time.Millisecond {
		t.Errorf("status %d after %s", c.status(), c.wall)
	}
}

// A program that the command leaves behind has both outputs open. The end of the command is noticed nevertheless.
func TestACommandThatForksAwayEnds(t *testing.T) {
	var out bytes.Buffer
	c, err := launch([]string{"sh", "-c", "sleep 3600 & echo $!"}, nil, &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	<-c.done // the test has a limit of its own
	left, err := strconv.Atoi(strings.TrimSpace(string(c.out.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Errorf("what the command left behind has ended: %v", err)
	}
	if !c.cut || c.status() != 0 {
		t.Errorf("cut is %v, the status %d", c.cut, c.status())
	}
}

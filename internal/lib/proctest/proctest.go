// SPDX-License-Identifier: Apache-2.0

// Package proctest runs programs for tests: ones that answer lines, and copies of the test that are killed while they write. It
// finds addresses that they can listen on.
//
// It does not judge what a program says.
package proctest

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A Program runs. Out reads what it writes.
type Program struct {
	*exec.Cmd
	In  io.WriteCloser
	Out *bufio.Reader
}

// Start starts a program that ends with its input, which ends with the test.
func Start(t *testing.T, cmd *exec.Cmd) *Program {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Program{cmd, in, bufio.NewReader(out)}
	t.Cleanup(p.End)
	return p
}

// End ends the input and waits for the end of the program.
func (p *Program) End() {
	_ = p.In.Close()
	_ = p.Wait()
}

// FreeAddr returns an address of this machine on which nothing listens.
func FreeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// KillAfter starts the test program again with a variable of the environment, and kills it after it has written some lines. It
// returns everything that was written.
func KillAfter(t *testing.T, variable string, lines int) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for buffer := make([]byte, 4096); strings.Count(said.String(), "\n") < lines; {
		n, err := out.Read(buffer)
		if err != nil {
			t.Fatalf("it ended by itself: %v\n%s", err, said.String())
		}
		said.Write(buffer[:n])
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	return said.String()
}

// SPDX-License-Identifier: Apache-2.0

// Package proctest runs programs for tests: ones that answer lines, and copies of the test that are killed while they write. It
// finds addresses that they can listen on.
//
// It does not judge what a program says.
package proctest

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
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

// The kernel gives a port below 32768 to no socket that leaves the choice to it (ip_local_port_range). test/browser and test/e2e have
// other ports.
const portsFrom, portsMany = 17_500, 2_500

// portsGiven counts the ports that FreeAddr has tried. The first one differs between processes.
var (
	portsGiven atomic.Uint32
	firstPort  = rand.Uint32N(portsMany)
)

// FreeAddr returns an address of this machine on which nothing listens. Neither the kernel nor this function gives it to another
// program.
func FreeAddr(t *testing.T) string {
	t.Helper()
	for range portsMany {
		addr := fmt.Sprintf("127.0.0.1:%d", portsFrom+(firstPort+portsGiven.Add(1))%portsMany)
		l, err := net.Listen("tcp", addr)
		if err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("all ports are in use")
	return ""
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// image is the application of the Intel SDK and its library, which all containers have.
const image, application = "/sdk", "layered"

// layered is the application in one container.
type layered struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// newLayered starts the application in a mount of its own, as an engine makes for each container of an image.
func newLayered(n int) (*layered, error) {
	over, empty := fmt.Sprintf("/run/container%d", n), "/run/empty"
	for _, dir := range []string{over, empty} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := unix.Mount("overlay", over, "overlay", unix.MS_RDONLY, "lowerdir="+image+":"+empty); err != nil {
		return nil, fmt.Errorf("mounting an overlay: %w", err)
	}
	c := &layered{cmd: exec.Command(filepath.Join(over, application))}
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

// do makes the application obey a line, and returns its answer.
func (c *layered) do(line string) (string, error) {
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		return "", err
	}
	answer, err := c.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("the application answered %q: %w", answer, err)
	}
	return answer, nil
}

// layers runs the containers of one image, and prints the agent's counts of their calls and the applications' own.
func (a *agent) layers() error {
	const containers = 3
	var all []*layered
	for n := range containers {
		c, err := newLayered(n)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	each := func(line string) (answers string, err error) {
		for _, c := range all {
			answer, err := c.do(line)
			if err != nil {
				return "", err
			}
			answers += answer
		}
		return answers, nil
	}
	probed := func() (bool, error) {
		if _, err := each("ecall 1 1 1"); err != nil {
			return false, err
		}
		text, err := get("/metrics")
		ready := 0
		for line := range strings.Lines(text) {
			of := strings.HasPrefix(line, `teescope_ecalls_total{`) || strings.HasPrefix(line, `teescope_ocalls_total{`)
			if of && strings.Contains(line, `workload="`+application+`"`) {
				ready++
			}
		}
		return ready >= 2, err
	}
	for tries := 0; ; tries++ {
		is, err := probed()
		if err != nil {
			return err
		}
		if is {
			break
		}
		if tries == 100 {
			a.log()
			return errors.New("the calls of the containers are not counted")
		}
		time.Sleep(300 * time.Millisecond)
	}
	families := []string{"teescope_ecalls_total", "teescope_ocalls_total", "teescope_transition_probes_info"}
	if err := a.metrics("layers before", families...); err != nil {
		return err
	}
	answers, err := each("ecall 500 4 1")
	if err != nil {
		return err
	}
	section("layers made", answers)
	if err := a.metrics("layers after", families...); err != nil {
		return err
	}
	for _, c := range all {
		if err := errors.Join(c.in.Close(), c.cmd.Wait()); err != nil {
			return err
		}
	}
	return nil
}

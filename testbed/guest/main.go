// SPDX-License-Identifier: Apache-2.0

// Command guest is the first process of a virtual machine. It mounts file systems, loads modules, runs one command, and
// sends its output, exit status and files to the host, which then ends the machine. It powers the machine off only when that
// fails. It does not depend on the command: the host sends a job.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/testbed/machine/job"
)

func main() {
	fmt.Println("guest:", run()) // on the console
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// run returns when the guest must end the machine itself, and why.
func run() error {
	first := os.Getpid() == 1
	if first {
		if err := mounts(); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(job.File)
	if err != nil {
		return err
	}
	var j job.Job
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("reading the job: %w", err)
	}
	if first && len(j.Init) > 0 {
		return give(j.Init)
	}
	if err := load(j.Modules[:j.Ports]); err != nil {
		return err
	}
	ports, err := openPorts(job.PortStdout, job.PortStderr, job.PortFiles, job.PortStatus)
	if err != nil {
		return err
	}
	if err := send(ports[job.PortStatus], job.Status{Up: true}); err != nil {
		return err
	}
	status := job.Status{Ended: true, Sent: map[string]int64{}}
	status.Exit, err = work(j, ports)
	if err != nil {
		status.Error = err.Error()
	}
	status.Trouble = trouble()
	for name, p := range ports {
		if name != job.PortStatus {
			status.Sent[name] = p.sent
		}
	}
	if err := send(ports[job.PortStatus], status); err != nil {
		return err
	}
	time.Sleep(hostLimit)
	return errors.New("the host did not end the machine")
}

// give starts this program again and becomes the first process that the job requests.
func give(init []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = os.StartProcess(self, []string{self}, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("starting the guest beside %s: %w", init[0], err)
	}
	return fmt.Errorf("becoming %s: %w", init[0], unix.Exec(init[0], init, []string{"PATH=/usr/bin:/bin"}))
}

// hostLimit is how long the host has to receive the output and to end the machine.
const hostLimit = 10 * time.Minute

// port is a virtio port that counts what it sends. It has one writer at a time.
type port struct {
	file *os.File
	sent int64
}

func (p *port) Write(data []byte) (int, error) {
	n, err := p.file.Write(data)
	p.sent += int64(n)
	return n, err
}

func send(w io.Writer, s job.Status) error {
	line, err := json.Marshal(s)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// work runs the job and returns the command's exit status.
func work(j job.Job, ports map[string]*port) (int, error) {
	if err := unix.Sethostname([]byte(j.Hostname)); err != nil {
		return 0, err
	}
	if err := load(j.Modules[j.Ports:]); err != nil {
		return 0, err
	}
	if err := network(j.Relays); err != nil {
		return 0, err
	}
	exit, err := command(j, ports[job.PortStdout], ports[job.PortStderr])
	if err != nil {
		return 0, err
	}
	return exit, bring(j.Out, ports[job.PortFiles])
}

// command runs the job's command to its end and kills its remaining processes.
func command(j job.Job, stdout, stderr io.Writer) (int, error) {
	path, err := lookPath(j.Argv[0], j.Env)
	if err != nil {
		return 0, err
	}
	var pipes [2][2]*os.File
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			return 0, err
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	process, err := os.StartProcess(path, j.Argv, &os.ProcAttr{
		Dir: job.Dir, Env: j.Env, Files: []*os.File{null, pipes[0][1], pipes[1][1]},
		Sys: &unix.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	var copies sync.WaitGroup
	for i, to := range []io.Writer{stdout, stderr} {
		pipes[i][1].Close()
		copies.Go(func() { _, _ = io.Copy(to, pipes[i][0]) })
	}
	exit, err := reap(process.Pid)
	_ = unix.Kill(-1, unix.SIGKILL) // every process except this one
	copies.Wait()
	return exit, err
}

// lookPath finds a program by the PATH of its own environment.
func lookPath(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.Contains(name, "/") {
		return filepath.Join(job.Dir, name), nil
	}
	for _, e := range env {
		if list, found := strings.CutPrefix(e, "PATH="); found {
			for dir := range strings.SplitSeq(list, ":") {
				if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
					return filepath.Join(dir, name), nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// reap waits for all children, as a first process must, until one of them ends.
func reap(pid int) (int, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("waiting for the command: %w", err)
		case got == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case got == pid:
			return status.ExitStatus(), nil
		}
	}
}

// portsLimit is how long the driver may take to find the ports: below a second on an idle host.
const portsLimit = 3 * time.Minute

// openPorts opens the virtio ports of these names once the driver has found them.
func openPorts(names ...string) (map[string]*port, error) {
	ports := map[string]*port{}
	for until := time.Now().Add(portsLimit); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, file := range files {
			text, _ := os.ReadFile(file)
			name := strings.TrimSpace(string(text))
			if name == "" || ports[name] != nil {
				continue
			}
			f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(file)), os.O_WRONLY, 0)
			if err == nil {
				ports[name] = &port{file: f}
			}
		}
		if len(ports) == len(names) {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found the ports %v of %v", ports, names)
}

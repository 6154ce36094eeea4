// SPDX-License-Identifier: Apache-2.0

// Package demo shows teescope on a machine without a TEE. It boots the virtual machine of the source tree (testbed/) with
// slow enclaves, or with slow operations of confidential virtual machines, runs teescope in it, and prints the address of
// its page. It does not emulate anything itself, and is not part of an agent: it only starts programs.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// guest is the script that runs a command in the machine, beside teescope. The machine stays when it has ended.
const guest = start + `
"$@"
echo "the command ended with status $?; the page stays until Ctrl-C"
wait
`

// Options of a demonstration.
type Options struct {
	// Command is a program with its arguments that runs instead of the slow enclaves; empty for these. It is a file of this
	// machine, which is copied with its libraries, or a program of the virtual machine.
	Command []string
	Bring   []string // further files and folders for the machine: HOST[:GUEST], by default /job/NAME
	Source  string   // the source tree or a directory in it; empty for the working directory
	Binary  string   // the teescope that runs in the machine
	Kernel  string   // 6.1 or 6.12
	Listen  string   // host:port of the page on this machine
	For     time.Duration
	Out     io.Writer
	Err     io.Writer
	// Open shows the page to the user. Nil does not.
	Open func(url string)
}

// DefaultKernel is the kernel of the virtual machine if no other one is named.
const DefaultKernel = "6.12"

// epcMiB is less than the demo's enclaves need together.
const epcMiB = 32

// start begins the scripts. It starts teescope, which watches the processes of the rule $0, and waits until it watches the
// driver.
const start = `
./teescope up --listen 127.0.0.1:9750 --data-dir /run/teescope --interval 5s --overhead.budget 100% --transitions.trace on --watch "$0" --log.level warn >/dev/null &
until wget -q -O /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null; do sleep 0.2; done
` + driverIsWatched

// driverIsWatched waits until the driver is watched, because what enclaves did before is not known.
const driverIsWatched = `for try in $(seq 120); do
	wget -q -O - http://127.0.0.1:9750/metrics 2>/dev/null | grep -q ^sgx_enclaves_created_total && break
	sleep 1
done
`

// story is the script that runs in the machine. The working set of the paging enclave is half as large again as its
// share of the EPC. The other one leaves its enclave for each part of a request. Both run until the machine stops. The
// load reconnects now and then, because a connection is one ECALL, and an ECALL is timed when it ends. The enclaves start
// when the driver is watched, because the start and the threads of older ones are not known.
const story = start + `
kv -mib 4 -chatty 1 >/dev/null &
paging -mib 64 -working 40 -count 0 >/dev/null &
sleep 2
while :; do kvload -connections 2 -count 0 -seconds 4; done >/dev/null &
wait %1
`

// scene is what a demonstration shows.
type scene struct {
	options, script []string // of testbed/run
	about           string   // with a verb for the address of the page
}

// SGX runs the demo of SGX until ctx ends or its time is over.
func SGX(ctx context.Context, o Options) error {
	s := scene{
		options: enclaves(), script: []string{"sh", "-c", story, "comm=kv"},
		about: "teescope watches two enclaves in the virtual SGX machine: open %s in a browser; Ctrl-C ends it.\n" +
			"\"paging\" needs more enclave memory than there is, \"kv\" leaves its enclave for each piece of a request.\n",
	}
	if len(o.Command) > 0 {
		s.script = append([]string{"sh", "-c", guest, o.watched()}, o.inGuest()...)
		s.about = "teescope watches the command in the virtual SGX machine: open %s in a browser; Ctrl-C ends it.\n"
	}
	return show(ctx, o, s)
}

// show boots the machine of a scene, and says where its page is as soon as it answers.
func show(ctx context.Context, o Options, s scene) error {
	root, err := findSource(o.Source)
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("listening on %q: %w", o.Listen, err)
	}
	if err := portIsFree(o.Listen); err != nil {
		return err
	}
	if o.For > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.For)
		defer stop()
	}
	cmd := o.boot(ctx, root, append(s.options, "-port", port+":9750"), s.script)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the virtual machine: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	url := "http://" + o.Listen
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		if waitReady(ctx, url+"/-/ready") != nil {
			return
		}
		page := url + "/?page=tee"
		fmt.Fprintf(o.Out, s.about+
			"The machine is emulated: what happens is real, how long it takes is not.\n", page)
		if o.Open != nil {
			o.Open(page)
		}
	}()
	err = <-ended
	if ctx.Err() != nil { // the user ended it, or its time was over
		<-announced
		return nil
	}
	if err == nil {
		err = errors.New("it ended unexpectedly")
	}
	return fmt.Errorf("running the virtual machine: %w", err)
}

// enclaves are the options of the virtual SGX machine.
func enclaves() []string { return []string{"-epc", fmt.Sprint(epcMiB)} }

// boot returns the process that builds the machine if needed, boots it, and runs a script in it.
func (o Options) boot(ctx context.Context, root string, options, script []string) *exec.Cmd {
	fmt.Fprintln(o.Err, "building the virtual machine if needed (the first build downloads 210 MB and takes minutes), then booting it ...")
	args := []string{"-kernel", o.Kernel, "-mem", "2048", "-timeout", "24h", "-in", o.Binary + ":/job/teescope"}
	if len(o.Command) > 0 {
		if file, err := exec.LookPath(o.Command[0]); err == nil {
			args = append(args, "-in", file)
		}
	}
	for _, file := range o.Bring {
		args = append(args, "-in", file)
	}
	args = append(append(append(args, options...), "--"), script...)
	cmd := exec.CommandContext(ctx, filepath.Join(root, "testbed", "run"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = o.Out, o.Err
	return cmd
}

// inGuest returns the command as the virtual machine has it: a file of this machine is in its working directory.
func (o Options) inGuest() []string {
	return append([]string{filepath.Base(o.Command[0])}, o.Command[1:]...)
}

// watched returns the rule for the processes of the command. The kernel cuts their name, which is not a regular expression.
func (o Options) watched() string {
	const maxComm = 15 // TASK_COMM_LEN without the zero at its end
	name := o.inGuest()[0]
	return "comm=" + regexp.QuoteMeta(name[:min(len(name), maxComm)])
}

// errNoSource reports that the source tree with the virtual machine was not found.
var errNoSource = errors.New("the demo builds its virtual machine from teescope's source tree, which was not found: " +
	"run it in a clone of the repository, or name one by --source")

// findSource looks for the source tree in a directory and its parents.
func findSource(from string) (string, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return "", fmt.Errorf("looking for the source tree in %q: %w", from, err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "testbed", "run")); err == nil && info.Mode().IsRegular() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("looking in %s and above: %w", start, errNoSource)
		}
	}
}

// portIsFree checks, before minutes of building and booting, whether the page's port is free.
func portIsFree(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listening on %s: %w; use --listen for another address", addr, err)
	}
	return l.Close()
}

func waitReady(ctx context.Context, url string) error {
	client := http.Client{Timeout: 2 * time.Second}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// Browser opens a page in the user's browser, if one is available.
func Browser(url string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	if opener, err := exec.LookPath("xdg-open"); err == nil && strings.HasPrefix(url, "http://") {
		_ = exec.Command(opener, url).Start() // the address is also printed
	}
}

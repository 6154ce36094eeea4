// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/teescope/teescope/internal/lib/exposition"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// maxExposition is the maximum size of an exposition, in bytes. An agent with 128 workloads has half a MiB.
	maxExposition = 64 << 20
	// requestTimeout is the time limit of a request. An agent may delay it by 2 s, end the scrape before it, and give each
	// collector 4 s.
	requestTimeout = 15 * time.Second
	// agentStart is the maximum time until an agent of the recorder's own answers. It takes about a second.
	agentStart = 30 * time.Second
	// agentStop is the maximum time in which it ends.
	agentStop = 10 * time.Second
	maxLog    = 16 << 10 // bytes that are kept of its log
	// socketDir begins the name of the directory of its socket.
	socketDir, socketName = "teescope-record-", "agent.sock"
)

// Agent is the agent whose metrics are recorded.
type Agent struct {
	server *remote.Server
	http   *http.Client
	own    *ownAgent // nil if it ran before
}

// Connect returns an agent that runs already: HOST:PORT, unix:PATH or a URL.
func Connect(target string, a remote.Access) (*Agent, error) {
	s, err := remote.New("--connect", target, a, requestTimeout)
	if err != nil {
		return nil, err
	}
	s = s.TrimPath("/metrics")
	return &Agent{server: s, http: s.Client()}, nil
}

// Target returns the agent's name for display.
func (a *Agent) Target() string {
	if a.own != nil {
		return "an agent of its own"
	}
	return a.server.Target()
}

// answer is what an agent answers, and when.
type answer struct {
	asked, answered time.Time
	text            []byte
}

// scrape requests all metrics.
func (a *Agent) scrape(ctx context.Context) (got answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server.URL("metrics"), nil)
	if err != nil {
		return got, fmt.Errorf("querying %s: %w", a.Target(), err)
	}
	req.Header.Set("Accept", exposition.Accept)
	got.asked = time.Now()
	resp, err := a.http.Do(req)
	if err != nil {
		return got, lateIf(a.explain(a.server.Explain(err)), os.IsTimeout(err))
	}
	defer resp.Body.Close()
	got.answered = time.Now()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxExposition+1))
	switch {
	case err != nil:
		return got, lateIf(a.explain(fmt.Errorf("reading the response of %s: %w", a.Target(), err)), os.IsTimeout(err))
	case resp.StatusCode != http.StatusOK:
		return got, lateIf(a.server.ExplainStatus(resp.StatusCode, data), resp.StatusCode == http.StatusServiceUnavailable)
	case len(data) > maxExposition:
		return got, fmt.Errorf("the response of %s is larger than %d MiB", a.Target(), maxExposition>>20)
	}
	got.text = data
	return got, nil
}

// explain adds why an agent of the recorder's own has ended.
func (a *Agent) explain(err error) error {
	if a.own == nil || !a.own.ended() {
		return err
	}
	return fmt.Errorf("the agent has ended: %s", a.own.why())
}

// Answers reports whether an agent answers. An error says why one that listens refuses to.
func (a *Agent) Answers(ctx context.Context) (bool, error) {
	got, err := a.scrape(ctx)
	var refused *remote.RefusedError
	if errors.As(err, &refused) {
		return true, err
	}
	return err == nil && bytes.Contains(got.text, []byte("\n"+workloadsOf+"{")), nil
}

// Close ends an agent of the recorder's own.
func (a *Agent) Close() error {
	if a.own == nil {
		return nil
	}
	return a.own.stop()
}

// ownAgent is an agent that runs as a process of its own until its standard input ends. So the sandbox of the agent
// does not apply to the command, and the agent ends with the recorder, also when the recorder is killed.
type ownAgent struct {
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string // of its socket
	log   *logTail
	done  chan struct{}
	err   error // valid once done is closed
}

// Start starts an agent: a program whose arguments end with the address to listen on. It must end with its standard input.
func Start(ctx context.Context, program string, args ...string) (*Agent, error) {
	removeStale(os.TempDir(), time.Now())
	dir, err := os.MkdirTemp("", socketDir)
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the agent's socket: %w", err)
	}
	socket := "unix:" + filepath.Join(dir, socketName)
	a, err := Connect(socket, remote.Access{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	own := &ownAgent{dir: dir, log: &logTail{}, done: make(chan struct{})}
	own.cmd = exec.Command(program, append(args, socket)...)
	own.cmd.Stderr = own.log
	own.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it before the last sample
	if own.stdin, err = own.cmd.StdinPipe(); err == nil {
		err = own.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting an agent: %w", err), os.RemoveAll(dir))
	}
	go func() {
		own.err = own.cmd.Wait()
		close(own.done)
	}()
	a.own = own
	if err := a.ready(ctx); err != nil {
		return nil, errors.Join(err, own.stop())
	}
	return a, nil
}

// removeStale removes the directories of this user's recorders that were killed: nothing listens in them, and they are older
// than the start of an agent takes.
func removeStale(temp string, now time.Time) {
	dirs, _ := filepath.Glob(filepath.Join(temp, socketDir+"*")) // the pattern is valid
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < 2*agentStart {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
			continue
		}
		if c, err := net.Dial("unix", filepath.Join(dir, socketName)); err == nil {
			_ = c.Close() // it is in use
			continue
		}
		_ = os.RemoveAll(dir) // the next recorder tries again
	}
}

// ready waits until the agent answers.
func (a *Agent) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agentStart)
	defer cancel()
	for {
		_, err := a.scrape(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-a.own.done:
			return fmt.Errorf("the agent did not start: %s", a.own.why())
		case <-ctx.Done():
			return fmt.Errorf("the agent did not start within %s: %w", agentStart, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (o *ownAgent) ended() bool {
	select {
	case <-o.done:
		return true
	case <-time.After(100 * time.Millisecond): // its end may be on the way
		return false
	}
}

// why returns the last lines of the log of an agent that has ended.
func (o *ownAgent) why() string {
	if lines := o.log.String(); lines != "" {
		return lines
	}
	return fmt.Sprint(o.err)
}

func (o *ownAgent) stop() error {
	_ = o.stdin.Close() // this asks it to end
	select {
	case <-o.done:
	case <-time.After(agentStop):
		_ = o.cmd.Process.Kill() // fails if it has just ended
		<-o.done
	}
	return os.RemoveAll(o.dir)
}

// logTail keeps the end of a log.
type logTail struct {
	mu   sync.Mutex
	data []byte
}

// Write implements io.Writer.
func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	if more := len(l.data) - maxLog; more > 0 {
		l.data = append([]byte(nil), l.data[more:]...)
	}
	return len(p), nil
}

// String returns the last lines, safe for a terminal.
func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.data)), "\n")
	return text.TerminalLines(strings.Join(lines[max(0, len(lines)-5):], "\n"))
}

// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/collector"
	"github.com/teescope/teescope/internal/agent/collector/sandbox"
	"github.com/teescope/teescope/internal/lib/holder"
	"github.com/teescope/teescope/internal/lib/privilege"
	"github.com/teescope/teescope/internal/lib/requester"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/supervisor"
	"github.com/teescope/teescope/internal/lib/trim"
	"github.com/teescope/teescope/internal/server/httpapi"
	"github.com/teescope/teescope/internal/server/local"
	"github.com/teescope/teescope/internal/server/prom"
)

// The parts of up. Each is a process, so that a database that fails does not end the watching.
const (
	partAgent  = "agent"
	partServer = "server"
)

// Parts are the command lines of the two parts of up, without the name of the program.
type Parts struct{ Agent, Server []string }

// Up runs an agent and a server as two processes until ctx ends, and restarts a process that ends.
func Up(ctx context.Context, o Options, parts Parts) error {
	if err := mayWatch(o, "/proc"); err != nil {
		return err
	}
	account, err := privilege.FindAccount(o.Config.Sandbox.User)
	if err != nil {
		return err
	}
	listener, end, err := socketOf(ctx, o)
	if err != nil {
		return err
	}
	defer end()
	debug.SetGCPercent(supervisorGC)
	trim.Sparse()
	s := supervisor.New(supervisor.Options{
		Parts: []supervisor.Part{
			{Name: partAgent, Args: parts.Agent, Listens: true},
			{Name: partServer, Args: parts.Server, Listener: listener},
		},
		Started: func() error { return leave(account, o.Config.Sandbox.Required, o.Log.With("part", "supervisor")) },
		// The parts end by themselves within the timeout.
		Capabilities: privilege.Passed, Stop: service.RunTimeout + service.ShutdownTimeout + 2*time.Second, Log: o.Log.With("part", "supervisor"),
	})
	forwarded := make(chan os.Signal, 1)
	signal.Notify(forwarded, syscall.SIGHUP)
	defer signal.Stop(forwarded)
	go func() {
		for h := range forwarded {
			s.Signal(partServer, h)
		}
	}()
	return s.Run(ctx)
}

// socketOf listens on a unix socket for the server. A server that is started again is not root any more. It could not
// replace its socket in a directory of root.
func socketOf(ctx context.Context, o Options) (f *os.File, end func(), err error) {
	if !httpapi.IsSocket(o.Config.Listen) {
		return nil, func() {}, nil
	}
	web := webOptions(o, "")
	l, err := httpapi.ListenSocket(ctx, web.Listen, web.Socket)
	if err != nil {
		return nil, nil, err
	}
	if f, err = l.File(); err != nil {
		_ = l.Close() // nothing was written
		return nil, nil, fmt.Errorf("listening on %s: %w", web.Listen, err)
	}
	return f, func() {
		_ = f.Close() // the same
		_ = l.Close() // a socket that stays, in a directory of root, is replaced at the next start
	}, nil
}

// leave drops what the supervisor does not need to start a part again. The parts do so themselves before.
func leave(account privilege.Account, required bool, log *slog.Logger) error {
	if err := privilege.Become(account); err != nil && (required || !errors.Is(err, privilege.ErrRoot) && !errors.Is(err, unix.EPERM)) {
		return fmt.Errorf("confining the supervisor: %w", err)
	}
	if _, err := privilege.Drop(privilege.Supervisor); err != nil {
		return fmt.Errorf("confining the supervisor: %w", err)
	}
	// A part that is started again inherits this filter.
	if err := privilege.Seccomp(privilege.Supervisor); err != nil {
		if required {
			return fmt.Errorf("confining the supervisor: %w", err)
		}
		log.Info("process not confined", "mechanism", sandbox.Seccomp, "reason", err)
	}
	trim.Trim()
	return nil
}

// UpAgent runs the part of up that watches. It has no port: the server sends requests over the link.
func UpAgent(ctx context.Context, o Options, link *supervisor.Link) error {
	ctx, cancel := whileLinked(ctx, link)
	defer cancel()
	tuneMemory(0, agentMemory, agentGC)
	p := newProgram(o)
	p.link, p.sandbox = link, sandbox.NewPart(partAgent)
	p.collectors = []collector.Collector{p.sandbox} // the server has the others that every process has
	p.own = prometheus.NewRegistry()
	registerProcess(prometheus.WrapRegistererWith(prometheus.Labels{"process": partAgent}, p.own))
	p.agent()
	p.add(fewThreads{})
	p.confine(privilege.Agent)
	group := service.NewGroup(p.Log)
	gatherer := p.gatherer()
	mux := p.routes(gatherer)
	mux.Handle("GET /api/profiles/next", p.web.NextProfile)
	mux.Handle("GET /-/ready", fine(group.Ready))
	mux.Handle("GET /-/healthy", fine(gatherer.Hangs))
	group.Add(&linkServer{link: link, http: &http.Server{Handler: requester.FromLink(mux), ReadHeaderTimeout: 10 * time.Second}})
	group.Add(p.services...)
	group.Add(trimmer{})
	return group.Run(ctx)
}

// fine answers 200 as long as there is no error.
func fine(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// linkServer serves the server of up.
type linkServer struct {
	link *supervisor.Link
	http *http.Server
}

// Name implements service.Service.
func (*linkServer) Name() string { return "link" }

// Init implements service.Initializer.
func (l *linkServer) Init(context.Context) error {
	go func() { _ = l.http.Serve(l.link) }() // ends with the link
	return nil
}

// Shutdown implements service.Shutdowner.
func (l *linkServer) Shutdown(context.Context) error { return l.http.Close() }

// agentStart is the maximum time that the server waits for the agent at its start.
const agentStart = 20 * time.Second

// UpServer runs the part of up that stores.
func UpServer(ctx context.Context, o Options, link *supervisor.Link) error {
	ctx, cancel := whileLinked(ctx, link)
	defer cancel()
	tuneMemory(o.Config.Memory.Limit, serverMemory, gcPercent)
	for end := time.Now().Add(leftover); ; {
		p := newProgram(o)
		p.link, p.local = link, local.New(link.Dial)
		if err := p.stores()(); err != nil {
			return err
		}
		p.web.Inherited = supervisor.InheritedListener
		p.web.Threads, p.web.Control, p.web.Manifests, p.web.Frugal = p.local.Pass(), p.local.Pass(), p.local.Pass(), o.Config.Overhead.Budget < 1
		p.add(p.local.Ready(agentStart))
		p.confine(privilege.Server)
		err := p.run(ctx)
		if !ending(err) || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// leftover is the maximum time that a process may still hold the port or the database after its supervisor was killed.
const leftover = 3 * time.Second

// ending reports whether a server without a supervisor holds what this one needs. The kernel is ending it.
func ending(err error) bool {
	var inUse *prom.InUseError
	var listen *httpapi.ListenError
	switch {
	case errors.As(err, &inUse):
		return inUse.Holder == holder.Process{} || strings.HasPrefix(inUse.Holder.Comm, "teescope")
	case errors.As(err, &listen):
		return errors.Is(listen.Err, unix.EADDRINUSE) && (listen.Holder == "" || strings.Contains(listen.Holder, "(teescope"))
	}
	return false
}

// whileLinked ends when the supervisor has ended.
func whileLinked(ctx context.Context, link *supervisor.Link) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-link.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// PartArgs returns the command line of a part: that of up, with another subcommand.
func PartArgs(args []string, command string) []string {
	all := slices.Clone(args)
	if i := slices.Index(all, "up"); i >= 0 {
		all[i] = command
	}
	return all
}

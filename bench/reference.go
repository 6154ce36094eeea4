// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

//go:embed teemon.bpf.o
var teemonObject []byte

//go:embed lean.bpf.o
var leanObject []byte

// reference runs one of the two reference programs in its own process, as an exporter would, and scrapes it. Its user
// space does the minimum that such an exporter needs: it reads its maps in batches at each scrape and writes text.
func reference(name string, args ...string) func(context.Context, options, target) (*watcher, error) {
	return func(ctx context.Context, o options, _ target) (*watcher, error) {
		p, err := startReference(ctx, name, args...)
		if err != nil {
			return nil, err
		}
		w := &watcher{parts: []part{p}, stop: p.stop, counted: countedBy(p)}
		return w.scraped(ctx, o.scrapeEach), nil
	}
}

func startReference(ctx context.Context, name string, args ...string) (part, error) {
	self, err := os.Executable()
	if err != nil {
		return part{}, err
	}
	r, err := startServer(ctx, "/metrics", func(addr string) []string {
		return append([]string{self, "serve", "-listen", addr}, append(args, name)...)
	})
	if err != nil {
		return part{}, err
	}
	return part{name: name + " reader", child: r.child, url: r.url + "/metrics"}, nil
}

// countedBy returns a counter of a reference for the calls of a process: of all its threads, on entry.
func countedBy(p part) counter {
	return func(ctx context.Context, of subject) (float64, string, error) {
		body, err := fetch(ctx, p.url)
		if err != nil {
			return 0, "", err
		}
		n, err := sumOf(countedPattern(of.pid), body)
		return n, "", err
	}
}

func countedPattern(pid int) string {
	return fmt.Sprintf(`(?m)^reference_(?:calls|entered)_total\{tgid="%d",.*nr="%d".*\} (\S+)$`, pid, unix.SYS_GETPPID)
}

// serve runs in the process of a reference.
func serve(ctx context.Context, args []string, stderr io.Writer) error {
	var addr string
	var fill bool
	set := flag.NewFlagSet("bench serve", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&addr, "listen", "127.0.0.1:0", "address to serve on")
	set.BoolVar(&fill, "fill", false, "fill the hashes first")
	if err := set.Parse(args); err != nil {
		return err
	}
	objects := map[string][]byte{"teemon": teemonObject, "lean": leanObject}
	programs, err := loadObject(objects[set.Arg(0)])
	if err != nil {
		return fmt.Errorf("reference %q: %w", set.Arg(0), err)
	}
	defer programs.Close()
	if fill {
		if err := fillUp(programs.Maps["entered"], programs.Maps["left"]); err != nil {
			return err
		}
	}
	links, err := attach(set.Arg(0), programs)
	if err != nil {
		return err
	}
	defer closeAll(links)
	server := &http.Server{Addr: addr, ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			if err := writeMaps(w, programs.Maps); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})}
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func loadObject(object []byte) (*ebpf.Collection, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	programs, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("loading the programs: %w", err)
	}
	return programs, nil
}

// attach attaches a reference. The caller must keep the links, because the garbage collector closes unused ones.
func attach(name string, programs *ebpf.Collection) ([]link.Link, error) {
	if name == "lean" {
		one, err := link.AttachTracing(link.TracingOptions{Program: programs.Programs["lean_enter"]})
		return []link.Link{one}, err
	}
	var links []link.Link
	for _, p := range []struct{ group, event, program string }{
		{"raw_syscalls", "sys_enter", "teemon_enter"},
		{"raw_syscalls", "sys_exit", "teemon_exit"},
		{"sched", "sched_switch", "teemon_switch"},
		{"exceptions", "page_fault_user", "teemon_user"},
		{"exceptions", "page_fault_kernel", "teemon_kernel"},
	} {
		one, err := link.Tracepoint(p.group, p.event, programs.Programs[p.program], nil)
		if err != nil {
			closeAll(links)
			return nil, fmt.Errorf("attaching to %s:%s: %w", p.group, p.event, err)
		}
		links = append(links, one)
	}
	return links, nil
}

func closeAll(links []link.Link) {
	for _, l := range links {
		_ = l.Close() // the others end with the process
	}
}

// callKey is struct call_key of teemon.bpf.c.
type callKey struct {
	PIDTGID, Nr uint64
	Comm        [16]byte
}

// leanKey is struct key of lean.bpf.c.
type leanKey struct{ TGID, Nr uint32 }

// fillUp fills the maps as some minutes of ordinary work do, because entries of ended threads stay.
func fillUp(maps ...*ebpf.Map) error {
	for _, m := range maps {
		for i := uint64(0); i < uint64(m.MaxEntries()); i++ {
			if err := m.Put(callKey{PIDTGID: 1<<62 | i}, uint64(1)); err != nil {
				return fmt.Errorf("filling a hash, entry %d: %w", i, err)
			}
		}
	}
	return nil
}

// writeMaps writes an exposition. Each map is a family, each entry a sample.
func writeMaps(w io.Writer, maps map[string]*ebpf.Map) error {
	var out bytes.Buffer
	var err error
	for name, m := range maps {
		switch m.KeySize() {
		case 32:
			err = writeMap(&out, name, m, callKey.labels)
		case 8:
			err = writeMap(&out, name, m, leanKey.labels)
		case 4:
			err = writeMap(&out, name, m, func(pid uint32) string { return fmt.Sprintf(`pid="%d"`, pid) })
		}
		if err != nil {
			return fmt.Errorf("reading the map %s: %w", name, err)
		}
	}
	_, err = w.Write(out.Bytes())
	return err
}

func writeMap[K any](w io.Writer, name string, m *ebpf.Map, labels func(K) string) error {
	keys, values := make([]K, m.MaxEntries()), make([]uint64, m.MaxEntries())
	n, err := m.BatchLookup(&ebpf.MapBatchCursor{}, keys, values, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // ErrKeyNotExist marks the last batch
		return err
	}
	fmt.Fprintf(w, "# TYPE reference_%s_total counter\n", name)
	for i := range n {
		fmt.Fprintf(w, "reference_%s_total{%s} %d\n", name, labels(keys[i]), values[i])
	}
	return nil
}

func (k callKey) labels() string {
	comm, _, _ := bytes.Cut(k.Comm[:], []byte{0})
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(string(comm), "?"))
	return fmt.Sprintf(`tgid="%d",tid="%d",nr="%d",comm="%s"`, k.PIDTGID>>32, uint32(k.PIDTGID), k.Nr, quoted)
}

func (k leanKey) labels() string { return fmt.Sprintf(`tgid="%d",nr="%d"`, k.TGID, k.Nr) }

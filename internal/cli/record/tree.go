// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	processreader "github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/watch"
)

const (
	maxTree     = 4096      // processes of the command that are inspected
	maxChosen   = 256       // workloads that are recorded
	maxChildren = 256 << 10 // bytes of a list of children
	maxComm     = 15        // bytes of a process's name in the kernel
)

// chooser finds the workloads of the command and of the watched servers. An agent counts by workload: a container, a
// systemd unit, or all processes that run a program of the same name.
type chooser struct {
	proc  hostfs.Root
	names cgroup.Hierarchy
	reads *processreader.Pool
	rules []watch.Rule

	mu     sync.Mutex
	chosen map[string]bool
	mine   map[string]bool // those of the command
	others map[string]int  // processes outside the command that are of its workloads
	found  map[string]int  // a process for each rule, by its name
	match  map[int]string  // the processes that match a rule now, with their workloads
	own    map[int]bool    // processes of the command, also those that have left it
	full   bool            // there were more than maxChosen
}

func newChooser(proc, cgroups string, rules []watch.Rule, named []string) *chooser {
	reads := processreader.New(processreader.Options{Proc: hostfs.At(proc), Cgroup: cgroups, Log: slog.New(slog.DiscardHandler)})
	c := &chooser{proc: hostfs.At(proc), names: cgroup.Naming(cgroups), reads: reads, rules: rules, chosen: map[string]bool{}, mine: map[string]bool{}, others: map[string]int{}, found: map[string]int{}, own: map[int]bool{}}
	for _, name := range named {
		c.chosen[name] = true
	}
	return c
}

// all returns the names of the chosen workloads.
func (c *chooser) all() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.chosen)
}

func (c *chooser) choose(name string, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.chosen[name] && len(c.chosen) == maxChosen {
		c.full = true
		return
	}
	c.chosen[name] = true
	if mine {
		c.mine[name] = true
	}
}

// identify returns the name that an agent gives the workload of a process.
func (c *chooser) identify(pid int) (string, bool) {
	p, ok := watch.Look(c.proc, c.names, c.reads, pid)
	if !ok {
		return "", false
	}
	return workload.Identify(cgroup.Names(p.Cgroup), p.Comm).Name, true
}

// watched looks for processes that match the rules. It returns the rules that match none.
func (c *chooser) watched() (silent []string, err error) {
	if len(c.rules) == 0 {
		return nil, nil
	}
	pids, err := c.proc.Processes()
	if err != nil {
		return nil, fmt.Errorf("listing the processes to watch: %w", err)
	}
	matched, servers, named := make([]bool, len(c.rules)), map[int]string{}, map[string]int{}
	for _, pid := range pids {
		p, ok := watch.Look(c.proc, c.names, c.reads, pid)
		if !ok {
			continue
		}
		p.Workload = workload.Identify(cgroup.Names(p.Cgroup), p.Comm).Name
		for i, r := range c.rules {
			if r.Match(p) {
				matched[i] = true
				servers[p.PID] = p.Workload
				if _, known := named[p.Comm]; !known {
					named[p.Comm] = p.PID
				}
				c.choose(p.Workload, false)
			}
		}
	}
	c.mu.Lock()
	c.match = servers
	c.keepFound(named)
	c.mu.Unlock()
	for i, r := range c.rules {
		if !matched[i] {
			silent = append(silent, r.String())
		}
	}
	return silent, nil
}

// expect chooses the workload that a command will have, so that its first system calls are recorded.
func (c *chooser) expect(program string) { c.choose(c.program([]string{program}), true) }

// program returns the name of the workload that a command will have, or "" if there is none.
func (c *chooser) program(command []string) string {
	if len(command) == 0 {
		return ""
	}
	group, _ := c.proc.Self().Cgroup(c.names.Controller()) // the command inherits it; empty where it cannot be read
	comm := filepath.Base(command[0])
	return workload.Identify(cgroup.Names(group), comm[:min(len(comm), maxComm)]).Name
}

// follow chooses the workloads of the command's first process and of its descendants.
func (c *chooser) follow(root int) {
	for _, pid := range c.descendants(root) {
		c.keep(pid)
		if name, ok := c.identify(pid); ok {
			c.choose(name, true)
		}
	}
}

// keep remembers a process of the command.
func (c *chooser) keep(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.own) < maxTree {
		c.own[pid] = true
	}
}

// matching returns the processes that match a rule and are not of the command, with their workloads.
func (c *chooser) matching() map[int]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.match)
	maps.DeleteFunc(all, func(pid int, _ string) bool { return c.own[pid] })
	return all
}

// descendants lists a process and its descendants. Descendants whose parent has ended are missing.
func (c *chooser) descendants(root int) []int {
	all := []int{root}
	for i := 0; i < len(all) && len(all) < maxTree; i++ {
		threads, _ := c.proc.Process(all[i]).Threads(maxTree) // none if it has ended
		for _, tid := range threads {
			data, _ := c.proc.Read(maxChildren, strconv.Itoa(all[i]), "task", strconv.Itoa(tid), "children")
			for field := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// keepFound keeps a process for each name of those that match: the first one that runs. It needs the lock.
func (c *chooser) keepFound(named map[string]int) {
	for comm, pid := range named {
		old, known := c.found[comm]
		if _, runs := c.match[old]; !runs && (known || len(c.found) < len(c.rules)) {
			c.found[comm] = pid
		}
	}
}

// servers returns a process that matches, by its name.
func (c *chooser) servers() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.found)
}

// strangers counts the processes outside the command that belong to one of its workloads.
func (c *chooser) strangers(root int) {
	c.mu.Lock()
	mine := maps.Clone(c.mine)
	c.mu.Unlock()
	pids, _ := c.proc.Processes() // none if /proc cannot be read, which the agent reports
	tree, others := c.descendants(root), map[string]int{}
	for _, pid := range pids {
		if slices.Contains(tree, pid) {
			continue
		}
		if name, ok := c.identify(pid); ok && mine[name] {
			others[name]++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, n := range others {
		c.others[name] = max(c.others[name], n)
	}
}

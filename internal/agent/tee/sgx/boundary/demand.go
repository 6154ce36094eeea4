// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"slices"
	"sync"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Demands are further rules that select processes while the backend runs. Calls of these processes are timed. They get no
// breakpoints, because breakpoints need privileges of the start. The options must have OnDemand.
type Demands struct {
	mu    sync.Mutex // protects the rules
	rules []watch.Rule
}

// Set replaces the rules. It does not wait: the next scan follows them.
func (d *Demands) Set(rules []watch.Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = rules
}

func (d *Demands) get() []watch.Rule {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rules
}

// follow forgets rules that are no longer in force, and finds those that match a process. A process that a rule in force has
// matched is not read again.
func (d *Demands) follow(p *process.Process, matching func([]watch.Rule) []string) {
	rules := d.get()
	p.Demanded = slices.DeleteFunc(p.Demanded, func(text string) bool {
		return !slices.ContainsFunc(rules, func(r watch.Rule) bool { return r.String() == text })
	})
	if len(p.Demanded) == 0 && len(rules) > 0 {
		p.Demanded = matching(rules)
	}
}

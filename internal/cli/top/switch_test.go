// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/teescope/teescope/internal/lib/jsonapi"
)

// fakeControl is an agent whose changes end at a fixed time. It refuses all while refusing is set.
type fakeControl struct {
	refusing string
	on       map[string]map[string]any // by ID
	next     int
}

func (f *fakeControl) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet && f.refusing != "":
		jsonapi.Refuse(w, http.StatusForbidden, jsonapi.Forbidden, errors.New(f.refusing))
	case r.Method == http.MethodGet:
		changes := []any{}
		for _, one := range f.on {
			changes = append(changes, one)
		}
		jsonapi.Answer(w, map[string]any{"max_seconds": 300, "changes": changes})
	case r.Method == http.MethodPost:
		var one map[string]any
		_ = json.NewDecoder(r.Body).Decode(&one)
		f.next++
		one["id"], one["end"] = fmt.Sprint("ID", f.next), recorded
		f.on[fmt.Sprint(one["id"])] = one
		jsonapi.Answer(w, one)
	default:
		delete(f.on, strings.TrimPrefix(r.URL.Path, "/api/control/"))
		w.WriteHeader(http.StatusNoContent)
	}
}

// status returns the line below the totals.
func status(m model) string { return screen{&m}.alert() }

// typeKey sends a key to a program, and the answer of the agent if the key requests one.
func typeKey(t *testing.T, p program, key string, asks bool) program {
	t.Helper()
	next, cmd := p.Update(tea.KeyPressMsg{Text: key, Code: rune(key[0])})
	if (cmd != nil) != asks {
		t.Fatalf("%s asks the agent: %v", key, cmd != nil)
	}
	if !asks {
		return next.(program)
	}
	if got := status(next.(program).model); !strings.HasPrefix(got, "switching ") {
		t.Errorf("%s: while the agent is asked the line says %q", key, got)
	}
	if _, again := next.Update(tea.KeyPressMsg{Text: key, Code: rune(key[0])}); again != nil {
		t.Errorf("%s asks again before there is an answer", key)
	}
	next, _ = next.Update(cmd())
	return next.(program)
}

func TestKeysSwitch(t *testing.T) {
	agent := &fakeControl{on: map[string]map[string]any{"other": {"id": "other", "kind": "watch", "rule": "comm=x", "end": recorded}}}
	p := program{ctx: t.Context(), source: NewLocal("this machine", agent), model: press(t, live(t, ""), "down")}
	workload := p.model.chosen.Workload
	until := recorded.Local().Format("15:04:05")
	for _, tt := range []struct {
		key, says string
		on        int
	}{
		{"W", "ON until " + until + ": watching of workload=" + workload, 2},
		{"T", "ON until " + until + ": timing of all system calls", 3},
		{"W", "OFF: watching of workload=" + workload, 2},
		{"T", "OFF: timing of all system calls", 1},
	} {
		p = typeKey(t, p, tt.key, true)
		if got := status(p.model); got != tt.says || len(agent.on) != tt.on {
			t.Errorf("%s: the line says %q and %d are on; want %q, %d", tt.key, got, len(agent.on), tt.says, tt.on)
		}
	}
	p = typeKey(t, p, "W", true)
	one := agent.on["ID3"]
	if one["kind"] != "watch" || one["rule"] != "workload="+workload || one["seconds"] != 300.0 { // the agent's limit is below 10 minutes
		t.Errorf("the agent is asked for %v", one)
	}
	p = typeKey(t, p, "down", false)
	if got := status(p.model); got != "" {
		t.Errorf("after another key the line says %q", got)
	}
}

// A key ends what this top has switched on, and nothing that others have.
func TestKeysEndNothingOfOthers(t *testing.T) {
	agent := &fakeControl{on: map[string]map[string]any{"other": {"id": "other", "kind": "timing", "end": recorded}}}
	p := program{ctx: t.Context(), source: NewLocal("this machine", agent), model: press(t, live(t, ""), "down")}
	for _, tt := range []struct {
		says string
		on   int
	}{
		{"ON until " + recorded.Local().Format("15:04:05") + ": timing of all system calls", 2},
		{"STILL ON, by others: timing of all system calls", 1},
	} {
		p = typeKey(t, p, "T", true)
		if got := status(p.model); got != tt.says || len(agent.on) != tt.on || agent.on["other"] == nil {
			t.Errorf("the line says %q and %v are on; want %q, %d", got, agent.on, tt.says, tt.on)
		}
	}
}

// A probe is named, switched off, and on again.
func TestAProbeIsSwitchedOff(t *testing.T) {
	agent := &fakeControl{on: map[string]map[string]any{}}
	p := program{ctx: t.Context(), source: NewLocal("this machine", agent), model: press(t, live(t, ""), "down")}
	named := func(name string) {
		t.Helper()
		p.model = press(t, p.model, "P")
		for _, letter := range name {
			p = typeKey(t, p, string(letter), false)
		}
		if line := (screen{&p.model}).view(); !strings.Contains(line, "switch off or on: "+name) {
			t.Errorf("the name is not shown:\n%s", line)
		}
	}
	for _, tt := range []struct {
		says string
		on   int
	}{{"OFF until " + recorded.Local().Format("15:04:05") + ": the probe syscall", 1}, {"ON: the probe syscall", 0}} {
		named("syscall")
		next, cmd := p.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
		if cmd == nil {
			t.Fatal("the agent is not asked")
		}
		next, _ = next.Update(cmd())
		p = next.(program)
		if got := status(p.model); got != tt.says || len(agent.on) != tt.on {
			t.Errorf("the line says %q and %v are on, want %q", got, agent.on, tt.says)
		}
	}
	named("q") // types, and does not quit
	if next, cmd := p.Update(tea.KeyPressMsg{Code: tea.KeyEscape}); cmd != nil || next.(program).model.naming || len(agent.on) > 0 {
		t.Errorf("esc does not drop the name: %v", agent.on)
	}
}

// Why nothing was switched is in the line, from the agent itself and safe for a terminal.
func TestKeysSayWhyNothingIsSwitched(t *testing.T) {
	agent := &fakeControl{refusing: "this agent allows no changes: set control.enabled\x1b[2J"}
	p := program{ctx: t.Context(), source: NewLocal("this machine", agent), model: press(t, live(t, ""), "enter")}
	p = typeKey(t, p, "W", true)
	if got, want := status(p.model), "NOT SWITCHED: this agent allows no changes: set control.enabled\ufffd[2J"; got != want {
		t.Errorf("the line says %q, want %q", got, want)
	}
	p.source = NewLocal("this machine", http.NotFoundHandler())
	p = typeKey(t, p, "T", true)
	if got, want := status(p.model), "NOT SWITCHED: this machine switches nothing on"; got != want {
		t.Errorf("without the API the line says %q, want %q", got, want)
	}
	for _, where := range []string{"filter", "help", "threads"} {
		p.model = press(t, live(t, ""), map[string][]string{"filter": {"/"}, "help": {"?"}, "threads": {"enter", "t"}}[where]...)
		typeKey(t, p, "W", false)
	}
}

// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// A receiver is down while all alerts that may fire at once begin, end and begin again. The queue is bounded, what is over
// is dropped, and the start of every firing alert waits, in order.
func TestQueueIsBoundedAndKeepsWhatFires(t *testing.T) {
	var log logtest.Log
	hook := newReceiver(t)
	hook.answer(http.StatusServiceUnavailable)
	h, stop := begin(t, file(t), &log, nil, hook)
	var all []Alert
	for i := range maxOpen {
		all = append(all, alert(fmt.Sprint(i)))
	}
	for range 2 {
		h.Firing("g", all, true)
		h.Firing("g", nil, true)
	}
	for i := range all {
		all[i].Labels["alertname"] = fmt.Sprint(maxOpen + i)
	}
	h.Firing("g", all, true)
	stop()
	w := h.opts.Webhooks[0]
	if n := len(h.queues[w.key]); n > maxQueue || n < maxOpen {
		t.Errorf("%d wait, want %d to %d", n, maxOpen, maxQueue)
	}
	waiting := map[string]bool{}
	for _, d := range h.queues[w.key] {
		if waiting[d.Alert] == !d.End {
			t.Fatalf("the end of %s comes before its start", d.Alert)
		}
		waiting[d.Alert] = !d.End
	}
	for key := range h.open {
		if !waiting[key] {
			t.Fatalf("the start of %s was dropped", key)
		}
	}
}

// The receiver answers 401 to some alerts, and accepts all others at once.
func TestRefusedAlertsHoldUpNoOther(t *testing.T) {
	var log logtest.Log
	hook := newReceiver(t)
	hook.refuse = map[string]int{"bad0": http.StatusUnauthorized, "bad1": http.StatusNotFound, "bad2": 500, "bad3": 429}
	h, _ := begin(t, file(t), &log, nil, hook)
	var all []Alert
	for i := range 4 {
		all = append(all, alert(fmt.Sprintf("bad%d", i)))
	}
	h.Firing("bad", all, true)
	for i := range 50 {
		h.Firing(fmt.Sprint(i), []Alert{alert(fmt.Sprint(i))}, true)
	}
	waittest.Until(t, "all others", func() bool { return len(hook.told()) == 50 })
	hook.mu.Lock()
	hook.refuse = nil
	hook.mu.Unlock()
	waittest.Until(t, "those that were refused", func() bool { return len(hook.told()) == 54 })
}

// Two thousand alerts begin one after the other and are all sent, and the state takes megabytes on the way.
func TestBurst(t *testing.T) {
	var log logtest.Log
	hook, name := newReceiver(t), file(t)
	h, stop := begin(t, name, &log, nil, hook)
	before := written(t)
	for i := range maxOpen {
		h.Firing(fmt.Sprint(i), []Alert{alert(fmt.Sprint(i))}, true)
	}
	waittest.Until(t, "all to be sent", func() bool { return len(hook.told()) == maxOpen })
	stop()
	took := written(t) - before
	t.Logf("%d alerts: %d bytes written, requests included", maxOpen, took)
	if took > 64<<20 {
		t.Errorf("%d bytes were written, want less than 64 MiB", took)
	}
	// As after a kill: the file and its journal are all that is left.
	h, _ = begin(t, name, &log, nil, hook)
	if n := fire(h); n != maxOpen || len(h.queues) != 0 {
		t.Errorf("after a restart %d fire and %d queues wait, want %d and none", n, len(h.queues), maxOpen)
	}
}

// written returns how many bytes this process has passed to write calls.
func written(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "wchar: ")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A kill can leave any prefix of the journal. No prefix loses an alert that an earlier line has, and none is an error.
func TestTornJournal(t *testing.T) {
	var log logtest.Log
	hook, name := newReceiver(t), file(t)
	hook.answer(http.StatusServiceUnavailable)
	h, stop := begin(t, name, &log, nil, hook)
	for i := range 5 {
		h.Firing(fmt.Sprint(i), []Alert{alert(fmt.Sprint(i))}, true)
	}
	h.Firing("0", nil, true)
	stop()
	journal, err := os.ReadFile(name + journalSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range journal {
		if err := os.WriteFile(name+journalSuffix, journal[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again := New(h.opts)
		if err := again.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := 1 + strings.Count(string(journal[:cut]), "\"open\"") // the first is in the state file
		if n := len(again.open) + len(again.ended); n > begun || n < begun-1 {
			t.Fatalf("cut at %d: %d alerts, want %d or one fewer", cut, n, begun)
		}
	}
}

// The watchdog goes to Alertmanagers only, and counts nowhere.
func TestWatchdog(t *testing.T) {
	var log logtest.Log
	am, hook := &alertmanager{}, newReceiver(t)
	h, _ := begin(t, file(t), &log, am, hook)
	dog := alert("Dog")
	dog.Labels["severity"] = "none"
	h.Firing("g", []Alert{dog, alert("A")}, true)
	waittest.Until(t, "the other alert", func() bool { return slices.Equal(hook.told(), []string{"firing A"}) })
	waittest.Until(t, "the watchdog to be repeated", func() bool { n, sends := am.get("Dog"); return sends > 3 && n.Labels != nil })
	if log.Count("Dog") > 0 {
		t.Errorf("the watchdog is logged:\n%s", log.String())
	}
	if err := h.Collect(t.Context(), func(m prometheus.Metric) {
		if strings.Contains(m.Desc().String(), "teescope_alerts_firing") {
			var d dto.Metric
			if err := m.Write(&d); err != nil || d.GetLabel()[0].GetValue() == "none" {
				t.Errorf("the watchdog is counted: %v %v", &d, err)
			}
		}
	}); err != nil {
		t.Error(err)
	}
}

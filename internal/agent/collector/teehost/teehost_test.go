// SPDX-License-Identifier: Apache-2.0

package teehost

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// backend emits one sample and then fails, or not.
type backend struct {
	kind teelabel.Kind
	desc *metric.Desc
	err  error
}

func made(kind teelabel.Kind, err error) *backend {
	return &backend{kind, metric.New(metric.Desc{Name: string(kind) + "_things"}), err}
}

func (b *backend) Name() teelabel.Kind      { return b.kind }
func (b *backend) Describe() []*metric.Desc { return []*metric.Desc{b.desc} }
func (b *backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	emit(b.desc.Value(7))
	return b.err
}

func collect(t *testing.T, c *Collector) (values map[string]float64, err error) {
	t.Helper()
	values = map[string]float64{}
	err = c.Collect(context.Background(), func(m prometheus.Metric) {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		for _, l := range d.Label {
			name += " " + l.GetValue()
		}
		values[name] = d.GetGauge().GetValue() + d.GetCounter().GetValue()
	})
	return values, err
}

func TestADriverThatIsLoadedLaterIsSeen(t *testing.T) {
	root := t.TempDir()
	c := New(tee.Roots{Proc: root, Dev: root, Sys: root})
	for _, want := range []float64{0, 1} {
		got, err := collect(t, c)
		if err != nil || len(got) != 5 || got["teescope_tee_available sgx"] != want {
			t.Errorf("%v, %v; want five kinds and SGX %v", got, err, want)
		}
		if err := os.WriteFile(filepath.Join(root, "sgx_enclave"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneBackendDoesNotKeepTheOthersFromBeingRead(t *testing.T) {
	broken := errors.New("no such luck")
	root := t.TempDir()
	c := New(tee.Roots{Proc: root, Dev: root, Sys: root}, made("first", broken), made("second", nil))
	got, err := collect(t, c)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "backend first") {
		t.Errorf("error %v does not say which backend failed and why", err)
	}
	if got["first_things"] != 7 || got["second_things"] != 7 {
		t.Errorf("emitted %v: want the samples of both", got)
	}
	if n := len(c.Describe()); n != 3 {
		t.Errorf("%d families are described, want 3", n)
	}
}

// serving is a backend that is a service, too.
type serving struct {
	*backend
	journal *[]string
	initErr error
}

func (s *serving) note(what string) { *s.journal = append(*s.journal, what+" "+string(s.kind)) }

func (s *serving) Init(context.Context) error { s.note("init"); return s.initErr }
func (s *serving) Run(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("ended")
}
func (s *serving) Shutdown(context.Context) error { s.note("down"); return nil }

func TestBackendsThatAreServicesAreServed(t *testing.T) {
	var journal []string
	broken := errors.New("no such luck")
	serve := func(kind teelabel.Kind, err error) *serving { return &serving{made(kind, nil), &journal, err} }
	c := New(tee.Roots{}, serve("first", nil), made("plain", nil), serve("second", nil))
	if err := c.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err == nil || !strings.Contains(err.Error(), "backend first: ended") || !strings.Contains(err.Error(), "backend second: ended") {
		t.Errorf("Run: %v does not name the backends that ended", err)
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	c = New(tee.Roots{}, serve("third", nil), serve("fourth", broken), serve("fifth", nil))
	if err := c.Init(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "backend fourth") {
		t.Errorf("Init: %v does not name the backend that failed", err)
	}
	want := "init first, init second, down second, down first, init third, init fourth, down third"
	if got := strings.Join(journal, ", "); got != want {
		t.Errorf("calls: %s\nwant   %s", got, want)
	}
}

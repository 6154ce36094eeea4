// SPDX-License-Identifier: Apache-2.0

package window

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

func TestOneOwnerLeavesPlacesForOthers(t *testing.T) {
	s := NewFiles(Options{States: make([]FileState, maxFiles), Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	add := func(owner tenant.Tenant, inode uint64) error {
		_, err := s.Add(hostfs.FileID{Inode: inode}, fmt.Sprint(inode), "sdk", owner)
		return err
	}
	greedy, n := tenant.Tenant{User: 1000}, 0
	for inode := range uint64(maxFiles) {
		if err := add(greedy, inode); err == nil {
			n++
		} else if !errors.Is(err, tenant.ErrQuota) || strings.Contains(err.Error(), "limit") { // half of the places are free
			t.Fatal(err)
		}
	}
	if n != maxFiles/2 || s.Places.Refused != maxFiles/2 {
		t.Errorf("one user has %d places of %d, and %d were refused", n, maxFiles, s.Places.Refused)
	}
	if err := add(tenant.Tenant{User: 1001}, 1000); err != nil {
		t.Errorf("another user: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := add(greedy, 1); err != nil {
		t.Errorf("after all files were dropped: %v", err)
	}
}

// A file is not attached while a process that maps it does not answer. It is attached when the process answers again.
func TestNoProbeIsAttachedWhileAProcessHangs(t *testing.T) {
	hangs := errors.New("it does not answer")
	s := NewFiles(Options{
		States: make([]FileState, maxFiles), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Safe: func(*File) error { return hangs },
	})
	f, err := s.Add(hostfs.FileID{Inode: 1}, "file", "sdk", tenant.Tenant{})
	if err != nil {
		t.Fatal(err)
	}
	f.Probes, f.Sites = nothing{}, []bpf.Site{{}}
	if err := s.Step(); err != nil || f.Attached() || f.Reason == "" {
		t.Errorf("while it hangs: %v, attached %v, reason %q", err, f.Attached(), f.Reason)
	}
	hangs = nil
	if err := s.Step(); err != nil || !f.Attached() || f.Reason != "" {
		t.Errorf("when it answers: %v, attached %v, reason %q", err, f.Attached(), f.Reason)
	}
}

// nothing are probes that do nothing.
type nothing struct{}

func (nothing) Attach() error       { return nil }
func (nothing) Detach() error       { return nil }
func (nothing) Count(float64) error { return nil }
func (nothing) Close() error        { return nil }

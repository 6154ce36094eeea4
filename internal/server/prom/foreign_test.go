// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/teescope/teescope/internal/lib/logtest"
)

// files makes empty files that no other user may read. A name that ends with a slash is a directory.
func files(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o750)
		if name[len(name)-1] == '/' {
			err = os.MkdirAll(path, 0o750)
		} else if err == nil {
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A directory of something else is refused before anything in it changes.
func TestForeignDirectories(t *testing.T) {
	for _, tt := range []struct {
		holds []string
		names string // what the error names; empty when the directory is used
	}{
		{nil, ""},
		{[]string{"lost+found/"}, ""},
		{[]string{"tsdb/", "notes"}, ""},
		{[]string{"tsdb.bad/"}, ""},
		{[]string{"findings.json.bad"}, ""},
		{[]string{"findings-history.jsonl"}, ""},
		{[]string{"alerts.json.journal", "notes"}, ""},
		{[]string{"forward/"}, ""},
		{[]string{"runs/", "notes"}, ""},
		{[]string{"profiles/"}, ""},
		{[]string{"conf.d/tsdb/", "secret"}, "conf.d"},
		{[]string{"lost+found/", "secret"}, "secret"},
		{[]string{"alerts.json.d/"}, "alerts.json.d"},
	} {
		dir := t.TempDir()
		files(t, dir, tt.holds...)
		err := refuseForeign(dir)
		var foreign *foreignDirError
		if tt.names == "" && err != nil || tt.names != "" && (!errors.As(err, &foreign) || foreign.Dir != dir || foreign.Holds != tt.names) {
			t.Errorf("%v: %v, want a refusal that names %q", tt.holds, err, tt.names)
		}
	}
	if err := refuseForeign(filepath.Join(t.TempDir(), "new")); err != nil {
		t.Errorf("a new directory: %v", err)
	}
}

// Root refuses the directory of another program, and leaves it as it was.
func TestRootRefusesAForeignDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: every other user risks its own files only")
	}
	dir := t.TempDir()
	files(t, dir, "conf.d/a", "secret")
	var log logtest.Log
	err := New(options(dir, &log)).Init(t.Context())
	want := dir + " is not a data directory of teescope: it holds conf.d; choose an empty directory or a new one"
	if err == nil || err.Error() != want {
		t.Errorf("Init() = %v, want %s", err, want)
	}
	if _, err := os.Lstat(filepath.Join(dir, databaseDir)); err == nil {
		t.Error("the database was made in it")
	}
}

// Only what teescope writes changes its owner.
func TestGive(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: only root gives files away")
	}
	const user = 65521
	dir, elsewhere := t.TempDir(), t.TempDir()
	owners := map[string]uint32{
		"tsdb/wal/00000000": user, "tsdb/reserve": user, "tsdb/damaged/block/index": user, "alerts.json": user, "alerts.json.journal": user,
		"alerts.json.new": user, "findings.json": user, "findings.json.bad": user,
		"forward/a/1.request": user, "runs/0123456789abcdef.tsrun": user, "profiles/1-2.pb.gz": user,
		"secret": 0, "conf.d/a": 0, "conf.d/tsdb/b": 0, "conf.d/alerts.json": 0, "alerts.json.old": 0, "tsdb.bad/wal": 0, "tsdb/of-4711": 4711,
	}
	files(t, dir, slices.Collect(maps.Keys(owners))...)
	files(t, elsewhere, "linked", "target")
	if err := errors.Join(os.Link(filepath.Join(elsewhere, "linked"), filepath.Join(dir, "tsdb", "hard")),
		os.Symlink(filepath.Join(elsewhere, "target"), filepath.Join(dir, "findings.json.new")),
		os.Chown(filepath.Join(dir, "tsdb/of-4711"), 4711, 4711)); err != nil {
		t.Fatal(err)
	}
	maps.Copy(owners, map[string]uint32{".": user, "tsdb": user, "tsdb/wal": user, "conf.d": 0, "conf.d/tsdb": 0, "tsdb/hard": 0, "findings.json.new": 0})
	if err := Give(dir, user, user); err != nil {
		t.Fatal(err)
	}
	for name, want := range owners {
		if got := ownerOf(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s belongs to %d, want %d", name, got, want)
		}
	}
	if got := ownerOf(t, filepath.Join(elsewhere, "target")); got != 0 {
		t.Errorf("the target of a link belongs to %d", got)
	}
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("%s has no owner", path)
	}
	return s.Uid
}

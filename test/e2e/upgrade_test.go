// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recordedAt is a time at which every directory of testdata/datadir has a sample of recorded_widgets with the value 42.
var recordedAt = time.Date(2026, 11, 22, 17, 26, 20, 0, time.UTC)

// stateFiles are the files beside the database, with the version of their format that this binary writes.
var stateFiles = map[string]string{"alerts.json": `"version":1`, "findings.json": `"version":1`}

// olderData unpacks the data directories that older versions have written: one for each format that was ever committed.
func olderData(t *testing.T) map[string]string {
	t.Helper()
	archives, err := filepath.Glob("testdata/datadir/*.tar.zst")
	if err != nil || len(archives) == 0 {
		t.Fatalf("found %v (%v)", archives, err)
	}
	dirs := map[string]string{}
	for _, archive := range archives {
		dir := t.TempDir()
		run(t, "tar", "--zstd", "--no-same-owner", "-xf", archive, "-C", dir)
		dirs[archive] = dir
	}
	return dirs
}

// openData starts a server with a directory, and requires the recorded sample.
func openData(t *testing.T, dir string) *teescope {
	t.Helper()
	s := start(t, "server", "--data-dir", dir, "--retention.time", "36500d", "--rules.default=false", "--analysis.interval", "1h",
		"--scrape", "nobody=http://"+freeAddr(t)+"/metrics")
	if got, err := query("http://"+s.addr, "sum(recorded_widgets)", recordedAt); err != nil || got["{}"] != 42 {
		t.Errorf("the recorded sample is %v (%v), want 42", got, err)
	}
	return s
}

// Data of each older version opens: samples, findings and alerts.
func TestOlderDataOpens(t *testing.T) {
	for archive, dir := range olderData(t) {
		s := openData(t, dir)
		findings, err := get("http://" + s.addr + "/api/findings")
		if err != nil || !strings.Contains(findings, `"first_seen": "2026-11-22T17:26:09.356083115Z"`) {
			t.Errorf("%s: the finding is lost (%v):\n%s", archive, err, findings)
		}
		// Its rule does not exist here, so the recorded alert ends: it was read.
		eventually(t, testLimit, "the recorded alert to end", func() error {
			if !strings.Contains(s.log.String(), `msg="alert has ended" part=alerts alert=Recorded`) {
				return errors.New(s.log.String())
			}
			return nil
		})
		s.stop(t)
		for file, version := range stateFiles {
			if _, err := os.Stat(filepath.Join(dir, file+".bad")); err == nil {
				t.Errorf("%s: %s was not read:\n%s", archive, file, s.log.String())
			}
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || !bytes.Contains(text, []byte(version)) {
				t.Errorf("%s: %s has another version (%v): record a directory of the version before, and add it to testdata/datadir", archive, file, err)
			}
		}
	}
}

// A binary that meets the state files of a newer one keeps them under another name, says so, and still opens the samples.
func TestNewerStateIsKeptAside(t *testing.T) {
	for archive, dir := range olderData(t) {
		newer := map[string][]byte{}
		for file, version := range stateFiles {
			path := filepath.Join(dir, file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			newer[file] = bytes.Replace(text, []byte(version), []byte(`"version":99`), 1)
			if err := os.WriteFile(path, newer[file], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := openData(t, dir)
		for file, want := range newer {
			aside := filepath.Join(dir, file+".bad")
			if kept, err := os.ReadFile(aside); err != nil || !bytes.Equal(kept, want) {
				t.Errorf("%s: %s is not kept as it was: %v", archive, file, err)
			}
			if log := s.log.String(); !strings.Contains(log, "version") || !strings.Contains(log, fmt.Sprintf("=%s ", aside)) && !strings.Contains(log, fmt.Sprintf("=%s\n", aside)) {
				t.Errorf("%s: the log does not name %s:\n%s", archive, aside, log)
			}
		}
	}
}

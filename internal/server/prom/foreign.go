// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// The directories in the data directory.
const (
	databaseDir = "tsdb"
	// forwardDir has the samples that wait, one directory for each receiver.
	forwardDir = "forward"
	// RunsDir has the runs that users pushed, and ProfilesDir the profiles of the agent of up. Other packages write them.
	RunsDir     = "runs"
	ProfilesDir = "profiles"
)

// stateDirs are the directories that teescope writes.
var stateDirs = []string{databaseDir, forwardDir, RunsDir, ProfilesDir}

// stateFiles are the files of teescope beside the database. The journal of the alerts and the forms of stateForms belong to them.
var stateFiles = []string{"alerts.json", "findings.json", "findings-history.jsonl", "silences.json", "dashboards.json"}

// stateForms are added to the name of a state file: while it is written, when it cannot be read, and for its journal.
var stateForms = []string{"", ".new", ".bad", ".journal"}

// foreignDirError reports that a directory holds files, and none of them is of teescope.
type foreignDirError struct{ Dir, Holds string }

// Error implements error.
func (e *foreignDirError) Error() string {
	return fmt.Sprintf("%s is not a data directory of teescope: it holds %s; choose an empty directory or a new one", e.Dir, e.Holds)
}

// written reports whether teescope writes the file. The name is relative to the data directory.
func written(name string) bool {
	top, _, below := strings.Cut(name, "/")
	return slices.Contains(stateDirs, top) || !below && isState(top)
}

func isState(name string) bool {
	for _, file := range stateFiles {
		for _, form := range stateForms {
			if name == file+form {
				return true
			}
		}
	}
	return false
}

// refuseForeign refuses a directory with files of others. The directory is given to the service user, who may then rename and
// remove what it holds. A directory of teescope may hold other files besides. The root of a new file system is empty.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return notWritable(dir, err)
	}
	holds := ""
	for _, entry := range entries {
		switch name := entry.Name(); {
		case written(name), name == databaseDir+".bad": // OpenError advises the operator to rename a damaged database so
			return nil
		case name != "lost+found" && holds == "":
			holds = name
		}
	}
	if holds == "" {
		return nil
	}
	return &foreignDirError{Dir: dir, Holds: holds}
}

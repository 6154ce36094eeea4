// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/inputfile"
)

const (
	// maxParents bounds the search for a repository towards the root.
	maxParents = 40
	// maxReference bounds the file of one reference, and maxPacked the file of all, in bytes.
	maxReference = 4 << 10
	maxPacked    = 16 << 20
	// maxSymbolic bounds how many references lead to each other.
	maxSymbolic = 5
)

// git adds the commit and the branch of the repository that has a directory. They are read from its files
// (gitrepository-layout(5)), without git. A repository that keeps references in another format than files has none.
func git(all *list, dir string) {
	own, common := repository(dir)
	if own == "" {
		return
	}
	name := "HEAD"
	for range maxSymbolic {
		value := reference(own, common, name)
		target, symbolic := strings.CutPrefix(value, "ref: ")
		if !symbolic {
			if isHash(value) {
				all.add(Program, "git_commit", value)
			}
			break
		}
		if name = strings.TrimSpace(target); !isReference(name) {
			return
		}
	}
	if branch, found := strings.CutPrefix(name, "refs/heads/"); found {
		all.add(Note, "git_branch", branch)
	}
}

// repository returns the directory with HEAD, and the one with the shared references. They differ in a worktree.
func repository(dir string) (own, common string) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", ""
	}
	for range maxParents {
		path := filepath.Join(dir, ".git")
		if info, err := os.Stat(path); err == nil {
			own = path
			if !info.IsDir() {
				own = pointer(path, "gitdir: ")
			}
			break
		}
		if dir == filepath.Dir(dir) {
			return "", ""
		}
		dir = filepath.Dir(dir)
	}
	if own == "" {
		return "", ""
	}
	if common = pointer(filepath.Join(own, "commondir"), ""); common == "" {
		common = own
	}
	return own, common
}

// pointer reads a file with the path of a directory, which may be relative to the file.
func pointer(file, prefix string) string {
	data, err := inputfile.Read(file, maxReference)
	if err != nil {
		return ""
	}
	path, found := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), prefix)
	if !found || path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path
}

// isReference reports whether a name is a path below refs that leads nowhere else.
func isReference(name string) bool {
	return strings.HasPrefix(name, "refs/") && filepath.IsLocal(name)
}

// reference returns the content of a reference: a hash, or "ref: " and another reference.
func reference(own, common, name string) string {
	for _, dir := range []string{own, common} {
		if data, err := inputfile.Read(filepath.Join(dir, name), maxReference); err == nil {
			return strings.TrimSpace(string(data))
		}
	}
	packed, err := inputfile.Read(filepath.Join(common, "packed-refs"), maxPacked)
	if err != nil {
		return ""
	}
	return parsePacked(packed, name)
}

// parsePacked finds a reference in lines of a hash and a name. Other lines begin with "#" or "^".
func parsePacked(packed []byte, name string) string {
	for line := range strings.Lines(string(packed)) {
		if hash, of, found := strings.Cut(strings.TrimSpace(line), " "); found && of == name && isHash(hash) {
			return hash
		}
	}
	return ""
}

// isHash reports whether a text is a SHA-1 or a SHA-256 in hexadecimal.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// The states of a working directory.
const (
	clean    = "clean"
	modified = "modified"
	unknown  = "unknown"
)

// gitLimit is the time that git may take.
const gitLimit = 5 * time.Second

// GitState says whether tracked files of a directory differ from its commit. The files of the repository do not show
// that, so it runs git, if it is installed, for at most 5 seconds. git writes nothing and starts neither hooks nor the
// monitor that the repository configures. It applies filters of files, and refuses a repository of another user.
// Without a repository, git or an answer in time the state is unknown.
func GitState(ctx context.Context, dir string) Condition {
	return Condition{Name: "git_state", Value: gitState(ctx, dir), Kind: Program}
}

func gitState(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
		"status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return unknown
	}
	if err := cmd.Start(); err != nil {
		return unknown
	}
	n, err := io.ReadFull(out, make([]byte, 1))
	if n > 0 {
		cancel() // one line is enough
	}
	failed := cmd.Wait()
	switch {
	case n > 0:
		return modified
	case failed != nil, !errors.Is(err, io.EOF):
		return unknown
	}
	return clean
}

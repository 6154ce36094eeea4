// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// apt is the package manager with the lists of this machine, or with others by its configuration file.
type apt string

// output runs one of apt's programs and returns what it prints.
func (a apt) output(ctx context.Context, dir, program string, args ...string) (string, error) {
	if a != "" {
		args = append([]string{"-c", string(a)}, args...)
	}
	return output(ctx, dir, program, args...)
}

// listsLast is how long lists are used before they are fetched again.
const listsLast = 24 * time.Hour

// archive returns an apt with the lists of another suite of Debian's archive. It is the archive that this machine uses,
// with its signatures, and the machine's own lists stay as they are.
func (s Store) archive(ctx context.Context, suite string) (apt, error) {
	dir, err := filepath.Abs(filepath.Join(string(s), "apt-"+suite))
	if err != nil {
		return "", err
	}
	a, fetched := apt(filepath.Join(dir, "apt.conf")), filepath.Join(dir, "fetched")
	if info, err := os.Stat(fetched); err == nil && time.Since(info.ModTime()) < listsLast {
		return a, nil
	}
	uri, err := output(ctx, "", "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian")
	if err != nil {
		return "", err
	}
	uri, _, _ = strings.Cut(uri, "\n")
	if uri == "" {
		return "", errors.New("this machine has no list of Debian's packages: is there one (apt-get update)?")
	}
	for _, d := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return "", err
		}
	}
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	for file, text := range map[string]string{
		filepath.Join(dir, "sources.list"): fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, uri, suite),
		string(a): fmt.Sprintf(`Dir::State %q;
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache %q;
Dir::Etc::sourcelist %q;
Dir::Etc::sourceparts "-";
Acquire::Languages "none";
`, filepath.Join(dir, "state"), filepath.Join(dir, "cache"), filepath.Join(dir, "sources.list")),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	if _, err := a.output(ctx, "", "apt-get", "update", "-q"); err != nil {
		return "", err
	}
	return a, os.WriteFile(fetched, nil, 0o644)
}

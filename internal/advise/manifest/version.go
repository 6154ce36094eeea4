// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"slices"
	"strconv"
	"strings"
)

// Versions are those of Gramine that a program may run with, from 1.Least to 1.Most. A nil one is not known.
type Versions struct {
	Least, Most int
	Source      string // FILE:LINE, or where else it was read
}

// version matches 1.6, 1.6.2, v1.7-ITP, 1.9post and 1.8~UNRELEASED. Before 1.0 it was Graphene.
var version = lazy.Regexp(`^v?1\.(\d{1,2})(?:[.~+A-Za-z-][0-9A-Za-z.~+-]{0,30})?$`)

// ParseVersion reads a version of Gramine, such as 1.6.2.
func ParseVersion(s, source string) (Versions, error) {
	found := version().FindStringSubmatch(s)
	if found == nil {
		return Versions{}, fmt.Errorf("%s is not a version of Gramine such as 1.6.2", shown(s))
	}
	n, err := strconv.Atoi(found[1])
	return Versions{n, n, source}, err
}

// Upto are 1.0 to 1.most.
func Upto(most int, source string) Versions { return Versions{0, most, source} }

// String is "1.6", or "1.0 to 1.7".
func (v *Versions) String() string {
	switch {
	case v == nil:
		return "of an unknown version"
	case v.Least == v.Most:
		return fmt.Sprintf("1.%d", v.Most)
	}
	return fmt.Sprintf("1.%d to 1.%d", v.Least, v.Most)
}

// Before reports whether all of them are older than a version.
func (v *Versions) Before(s string) bool { return v != nil && v.Most < minor(s) }

// Since reports whether all of them are a version or later.
func (v *Versions) Since(s string) bool { return v != nil && v.Least >= minor(s) }

// Narrow returns what both allow, with the source of the narrower one. It returns false if they exclude each other.
func (v *Versions) Narrow(o *Versions) (*Versions, bool) {
	switch {
	case v == nil:
		return o, true
	case o == nil:
		return v, true
	}
	both := Versions{max(v.Least, o.Least), min(v.Most, o.Most), v.Source}
	if o.Most-o.Least < v.Most-v.Least {
		both.Source = o.Source
	}
	return &both, both.Least <= both.Most
}

// releases are the commits of Gramine's releases, the tags of its repository. A log of the level debug names the commit.
var releases = map[string]string{
	"175b1867cbe81250e75d5b8b9b35ba0530a37e7f": "1.0", "3623e6322f0e652cb4757be5d037295e3ac7fa95": "1.1",
	"fd2e30274a2c0eb5aa7f9b95938f185345965eb4": "1.2", "a6887a5321433c8605bdbecea9f3d45afed66993": "1.3",
	"e18bc05b17fd704b259cb0401f928dc4ec5199a6": "1.3", "aefd5d0875c4fdf76edd67f5043952bdd32b0f7a": "1.4",
	"0b552696d4f402c291c8c2cce525e7117d06d397": "1.5", "a7a72c41402416e80d37e5d4fe04ae2868913d0b": "1.6",
	"5939d7b2249071763f5e581a0d7db0f56c627d9b": "1.6", "a971e30f3430b4b8079ec42f5d035ced68130bdc": "1.6",
	"10e93534169802be16fc9e2b3e9ac70d08efcb41": "1.7", "db1d16db3b1b08c6b58673d29e5cffab8d58e1e0": "1.7",
	"8fc123d2ae5e79d4f1b4e3acd73462f74709d982": "1.8", "0d1a4b7607592dab4c8a720c962acee3de6b4ca8": "1.9",
}

// VersionOfCommit returns the version that a commit is the release of.
func VersionOfCommit(commit, source string) (Versions, bool) {
	s, ok := releases[commit]
	if !ok {
		return Versions{}, false
	}
	v, err := ParseVersion(s, source)
	return v, err == nil
}

// MaxInstalled bounds a file of an installed package that has a version, in bytes. A list of Debian's packages has a few MiB.
const MaxInstalled = 32 << 20

var (
	assigned = lazy.Regexp(`^__version__ = ['"]([^'"]{1,40})['"]`)
	field    = lazy.Regexp(`^(Package|Name|Version): ([^ ]{1,60})$`)
)

// InstalledVersion finds the version in a file of an installed Gramine: graminelibos/__init__.py and METADATA of its Python package,
// what dpkg -s and rpm -qi print, and /var/lib/dpkg/status. There a package that was removed keeps its version while its configuration
// stays. The line is that of the version.
func InstalledVersion(data []byte) (s string, line int, ok bool) {
	gramine := false
	for text := range strings.Lines(string(data)) {
		line++
		text = strings.TrimRight(text[:min(len(text), 200)], "\r\n")
		if found := assigned().FindStringSubmatch(text); found != nil {
			return found[1], line, true
		}
		name, value, _ := strings.Cut(text, ":")
		if name == "Status" && !strings.HasSuffix(value, " installed") {
			gramine = false
		}
		found := field().FindStringSubmatch(strings.TrimSpace(name) + ": " + strings.TrimSpace(value))
		switch {
		case found == nil:
		case found[1] != "Version":
			gramine = slices.Contains([]string{"gramine", "gramine-dcap", "graminelibos"}, found[2])
		case gramine:
			return found[2], line, true
		}
	}
	return "", 0, false
}

// Newer is a key of a manifest that some versions of Gramine do not know yet.
type Newer struct {
	Key   string
	Line  int
	Since string // the version that introduced it
	Older string // an older spelling that means the same, or ""
}

// TooNew returns the keys of a manifest that none of the versions knows, in the order of their lines. They are some of those that
// [Introduced] knows. Keys in a block of a template may be for other versions.
func TooNew(m *Manifest, v *Versions) []Newer {
	var all []Newer
	for _, e := range m.entries {
		since := Introduced(e.key)
		if e.table >= 0 || since == "" || !v.Before(since) || m.inBlock(e.start) != nil || slices.ContainsFunc(all, func(n Newer) bool { return n.Key == e.key }) {
			continue
		}
		n := Newer{Key: e.key, Line: m.line(e.start), Since: since}
		for _, s := range successors {
			if s.New == e.key && s.convert != nil && (s.Gone == "" || v.Before(s.Gone)) {
				n.Older = s.Old
			}
		}
		all = append(all, n)
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expand turns a{b,c}d into abd and acd.
func expand(pattern string) []string {
	open, end := strings.Index(pattern, "{"), strings.Index(pattern, "}")
	if open < 0 || end < open {
		return []string{pattern}
	}
	var all []string
	for part := range strings.SplitSeq(pattern[open+1:end], ",") {
		all = append(all, expand(pattern[:open]+part+pattern[end+1:])...)
	}
	return all
}

// rooms reads the first column of the table under "## The rooms" in ARCHITECTURE.md.
func rooms(t *testing.T) []string {
	t.Helper()
	_, table, found := strings.Cut(read(t, "ARCHITECTURE.md"), "## The rooms")
	if !found {
		t.Fatal(`ARCHITECTURE.md has no section "The rooms"`)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	quoted := regexp.MustCompile("`([^`]+)`")
	var names []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			for _, one := range expand(name[1]) {
				names = append(names, strings.Trim(one, "/"))
			}
		}
	}
	if len(names) == 0 {
		t.Fatal("ARCHITECTURE.md names no room")
	}
	return names
}

func TestExpand(t *testing.T) {
	for pattern, want := range map[string][]string{
		"web/":             {"web/"},
		"docs/{user,dev}/": {"docs/user/", "docs/dev/"},
		"{a,b}{c,d}":       {"ac", "ad", "bc", "bd"},
	} {
		if got := expand(pattern); !slices.Equal(got, want) {
			t.Errorf("expand(%q) = %q, want %q", pattern, got, want)
		}
	}
}

func TestEveryRoomNamedExists(t *testing.T) {
	for _, room := range rooms(t) {
		if info, err := os.Stat(filepath.Join(root, room)); err != nil || !info.IsDir() {
			t.Errorf("ARCHITECTURE.md names the room %s, and there is no such directory", room)
		}
	}
}

// TestEveryRoomIsNamed finds the directories that hold source and are in no row of the table. A
// collector's or a page's own folder belongs to the room above it.
func TestEveryRoomIsNamed(t *testing.T) {
	named := rooms(t)
	missing := map[string]bool{}
	for _, file := range walk(t) {
		dir := path.Dir(file)
		if !handWritten(t, file) || dir == "." || strings.HasPrefix(dir, ".") {
			continue
		}
		first := strings.SplitN(dir, "/", 3)
		room := first[0]
		if (room == "internal" || room == "cmd" || room == "test") && len(first) > 1 {
			room = first[0] + "/" + first[1]
		}
		covered := func(name string) bool { return within(room, name) || within(name, room) }
		if !slices.ContainsFunc(named, covered) {
			missing[room] = true
		}
	}
	for room := range missing {
		t.Errorf("ARCHITECTURE.md has no row for %s/", room)
	}
}

// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests compare documents with docs/user/cli.md, which is generated from the commands.

// flagLine matches a line of the list of flags: the name, and the default if there is one.
var flagLine = regexp.MustCompile(`(?m)^ +(?:-\w, +|    )--([a-z0-9.-]+)\b(.*)$`)

// commandFlags returns the flags of each command with their text, by the words after teescope.
func commandFlags(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for section := range strings.SplitSeq(read(t, "docs/user/cli.md"), "\n## teescope") {
		name, text, _ := strings.Cut(section, "\n")
		_, text, _ = strings.Cut(text, "\nFlags:\n")
		flags := map[string]string{}
		for _, m := range flagLine.FindAllStringSubmatch(text, -1) {
			flags[m[1]] = m[2]
		}
		all[strings.TrimSpace(name)] = flags
	}
	if len(all) < 30 || len(all["up"]) < 30 {
		t.Fatalf("docs/user/cli.md has %d commands, and up has %d flags", len(all), len(all["up"]))
	}
	return all
}

// invocation matches a command of teescope, up to what does not belong to it.
var invocation = regexp.MustCompile(`(?:^|[\s('"/$])teescope((?: [a-z]+)+)([^|;&>)#]*)`)

// argument matches a quoted argument, which may contain anything.
var argument = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// TestFlagsAreThoseOfTheirCommand finds commands in documents with a flag that this command does not have.
func TestFlagsAreThoseOfTheirCommand(t *testing.T) {
	commands, seen := commandFlags(t), 0
	for _, file := range documents(t) {
		spans, lines := code(strings.ReplaceAll(read(t, file), "\\\n", " "))
		for _, line := range slices.Concat(spans, lines) {
			for _, m := range invocation.FindAllStringSubmatch(argument.ReplaceAllString(line, "Q"), -1) {
				words := strings.Fields(m[1])
				for len(words) > 0 && commands[strings.Join(words, " ")] == nil {
					words = words[:len(words)-1]
				}
				name := strings.Join(words, " ")
				own, _, _ := strings.Cut(m[2]+" ", " -- ") // what follows belongs to the program that is run
				for _, f := range flagName.FindAllStringSubmatch(own, -1) {
					seen++
					if _, has := commands[name][strings.TrimPrefix(f[1], "--")]; !has {
						t.Errorf("%s: teescope %s has no flag %s: %s", file, name, f[1], line)
					}
				}
			}
		}
	}
	if seen < 150 {
		t.Errorf("found %d flags of commands: has their format changed?", seen)
	}
}

// keyRow matches a row of the table of keys: name, default, commands.
var keyRow = regexp.MustCompile("(?m)^\\| `([a-z.-]+)` \\| (.+?) \\| ([a-z, ]+) \\|")

// longerDefaults are defaults for which the table has more words than the help.
var longerDefaults = []string{"data-dir", "workloads.settings"}

// TestKeysAreThoseOfTheCommands compares the table of docs/user/configuration.md with the flags of the commands that take them:
// names, defaults, and the commands.
func TestKeysAreThoseOfTheCommands(t *testing.T) {
	commands, described := commandFlags(t), map[string]bool{}
	_, table, _ := strings.Cut(read(t, "docs/user/configuration.md"), "\n## Keys\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range keyRow.FindAllStringSubmatch(table, -1) {
		key, says, of := row[1], strings.Trim(row[2], "`"), row[3]
		described[key] = true
		if of == "all" {
			of = "up, agent, server"
		}
		var takes []string
		for _, command := range []string{"up", "agent", "server"} {
			text, has := commands[command][key]
			if !has {
				continue
			}
			takes = append(takes, command)
			is := "" // flags without a value have none
			if _, after, found := strings.Cut(text, "(default "); found {
				is = strings.TrimSuffix(after, ")")
			}
			switch {
			case slices.Contains(longerDefaults, key):
			case is == "" && (says == "none" || says == "false" || says == "0"):
			case is != says:
				t.Errorf("docs/user/configuration.md: the default of %s is %q, and the help of %s has %q", key, says, command, is)
			}
		}
		want := strings.Split(of, ", ")
		slices.Sort(want)
		slices.Sort(takes)
		if !slices.Equal(takes, want) {
			t.Errorf("docs/user/configuration.md: %s is for %q, and %q take it", key, want, takes)
		}
	}
	for _, command := range []string{"up", "agent", "server"} {
		for key := range commands[command] {
			if !described[key] && key != "help" {
				t.Errorf("docs/user/configuration.md does not describe %s, which %s takes", key, command)
			}
		}
	}
}

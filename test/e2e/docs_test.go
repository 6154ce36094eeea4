// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the top of the source tree.
const root = "../.."

// examples returns the commands of a document: the lines of its console blocks that begin with "$ ", in order.
func examples(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		for line := range strings.Lines(block[1]) {
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
				commands = append(commands, command)
			}
		}
	}
	return commands
}

// Every teescope and curl command of the documents runs, in the order of the document. A long-running command (up,
// agent, server) must become ready, curl queries the last one started, and all others must end with status 0. Only the
// address and the data directory are replaced.
func TestExamplesInTheDocuments(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var last *teescope
			silence := "" // the ID that "teescope findings mute" printed, which later examples call ID
			for _, command := range examples(t, file) {
				words := strings.Fields(strings.TrimPrefix(command, "sudo "))
				switch {
				case words[0] == "teescope" && goesOn(words):
					last = startExample(t, command, last)
				case words[0] == "teescope" && len(words) > 1 && words[1] == "top":
					if last == nil {
						last = agent(t)
					}
					shell(t, strings.Replace(strings.TrimPrefix(command, "sudo "), "teescope top", binary+" top --connect "+last.addr, 1))
				case words[0] == "teescope" && len(words) > 1 && words[1] == "analyze":
					if last == nil {
						last = start(t, "up", "--data-dir", t.TempDir())
					}
					shell(t, strings.Replace(command, "teescope analyze", binary+" analyze --server "+last.addr, 1))
				case words[0] == "teescope" && len(words) > 1 && words[1] == "findings":
					if last == nil {
						last = start(t, "up", "--data-dir", t.TempDir())
					}
					command = strings.Replace(command, "teescope findings "+words[2], binary+" findings "+words[2]+" --server "+last.addr, 1)
					if words[2] == "mute" {
						if id := shell(t, command); id != "" {
							silence = strings.Fields(id)[0]
						}
						break
					}
					shell(t, strings.Replace(command, " ID", " "+silence, 1))
				case words[0] == "teescope":
					shell(t, strings.Replace(strings.TrimPrefix(command, "sudo "), "teescope", binary, 1))
				case words[0] == "curl":
					if last == nil {
						last = start(t, "up", "--data-dir", t.TempDir())
					}
					shell(t, strings.ReplaceAll(command, "127.0.0.1:9750", last.addr))
				default:
					continue // go, redis-server, ...: other programs
				}
				ran++
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d examples were found: has their format changed?", ran)
	}
}

func goesOn(words []string) bool {
	if len(words) < 2 || strings.Contains(strings.Join(words, " "), "--help") {
		return false
	}
	return words[1] == "up" || words[1] == "agent" || words[1] == "server"
}

// startExample starts a long-running command with its own flags on a free address and a data directory of its own.
func startExample(t *testing.T, command string, last *teescope) *teescope {
	t.Helper()
	command = strings.TrimPrefix(command, "sudo ")
	command = regexp.MustCompile(`--listen \S+`).ReplaceAllString(command, "")
	if last != nil {
		command = strings.ReplaceAll(command, "127.0.0.1:9750", last.addr)
	}
	// The shell splits the words as it does for the reader.
	list, err := exec.Command("sh", "-c", "printf '%s\\n' "+strings.TrimPrefix(command, "teescope ")).Output()
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(strings.TrimSpace(string(list)), "\n")
	if args[0] != "agent" {
		args = append(args, "--data-dir", t.TempDir())
	}
	return start(t, args[0], args[1:]...)
}

// shell runs a command, which must succeed, and print something unless it only ends a silence. It returns its output.
func shell(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = root // documents give paths from the top of the source tree
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) == 0 && !strings.Contains(command, " unmute ") {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	if strings.Contains(command, "/api/v1/") && !strings.Contains(string(out), `"status":"success"`) {
		t.Errorf("%s: %s", command, out)
	}
	return string(out)
}

// The output of `teescope config` is a file that --config reads, with the same result.
func TestPrintedConfigurationIsAFile(t *testing.T) {
	first := run(t, binary, "config", "--interval", "7s", "--workloads.max", "64", "--watch", "comm=^redis-server$", "--retention.size", "1GiB")
	file := filepath.Join(t.TempDir(), "teescope.yaml")
	if err := os.WriteFile(file, []byte(first), 0o644); err != nil {
		t.Fatal(err)
	}
	values := func(text string) string { // without the comments about the origin of a value
		return regexp.MustCompile(`(?m) *#.*$`).ReplaceAllString(text, "")
	}
	if second := run(t, binary, "config", "--config", file); values(second) != values(first) {
		t.Errorf("printed:\n%s\nread again:\n%s", first, second)
	}
}

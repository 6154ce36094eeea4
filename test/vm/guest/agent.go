// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

const address = "http://127.0.0.1:9750"

// agent is the running binary.
type agent struct{ cmd *exec.Cmd }

const logFile = "/log"

// startAgent starts the binary and waits until it counts, because the server of up is ready before its agent. Its log
// goes to a file, so that it does not mix with the lines of a section.
func startAgent(args ...string) (*agent, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// On an emulated machine, full counting exceeds the budget, but the test checks counts.
	a := &agent{cmd: exec.Command("/teescope", append(args, "--overhead.budget", "100%")...)}
	a.cmd.Stdout, a.cmd.Stderr = log, log
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the agent: %w", err)
	}
	if err := eventually("system calls are counted", func() bool {
		text, err := get("/metrics")
		return err == nil && strings.Contains(text, callsFamily+"{")
	}); err != nil {
		a.log()
		return nil, fmt.Errorf("the agent is not ready: %w", err)
	}
	return a, nil
}

// confined waits until the agent's start is complete, which ends with its confinement.
func (a *agent) confined() error { return a.waitFor(`teescope_sandbox{mechanism="seccomp"} 1`) }

// attached waits until the agent's start is complete and every probe is attached, except those that need a PMU.
func (a *agent) attached() error {
	if err := a.confined(); err != nil {
		return err
	}
	var missing []string
	err := eventually("all probes are attached", func() bool {
		text, err := get("/metrics")
		missing = unattached(text)
		return err == nil && len(missing) == 0
	})
	if err != nil {
		a.log()
		return fmt.Errorf("%w: %q", err, missing)
	}
	return nil
}

// unattached returns the samples of an exposition about probes that are not attached.
func unattached(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "teescope_probe_attached{") && strings.HasSuffix(line, "} 0\n") && !strings.Contains(line, `probe="llc_`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// log prints the agent's log.
func (a *agent) log() {
	text, err := os.ReadFile(logFile)
	if err != nil {
		text = []byte(err.Error())
	}
	section("log", string(text))
}

// callsFamily is the family of which only the programs' call is printed.
const callsFamily = "teescope_syscalls_total"

// metrics prints the exposition, or only the families with one of the prefixes, because the console is slow.
func (a *agent) metrics(name string, prefixes ...string) error {
	text, err := get("/metrics")
	if err != nil {
		return err
	}
	if len(prefixes) > 0 {
		var kept strings.Builder
		for line := range strings.Lines(text) {
			bare := strings.TrimPrefix(strings.TrimPrefix(line, "# TYPE "), "# HELP ")
			begins := func(p string) bool { return strings.HasPrefix(bare, p) }
			if slices.ContainsFunc(prefixes, begins) && (!begins(callsFamily+"{") || strings.Contains(line, `syscall="getppid"`)) {
				kept.WriteString(line)
			}
		}
		text = kept.String()
	}
	section(name, text)
	return nil
}

// query prints the present answer to a query.
func (a *agent) query(name, query string) error {
	text, err := get(queryPath(query))
	if err != nil {
		return err
	}
	section(name, text)
	return nil
}

// eventually prints the first answer to a query. Scrapes are late on slow CPUs, and there are none while the database
// opens.
func (a *agent) eventually(name, query string) (err error) {
	var text string
	for range 20 {
		if text, err = get(queryPath(query)); err == nil && !strings.Contains(text, `"result":[]`) {
			break
		}
		time.Sleep(time.Second)
	}
	if err != nil {
		return err
	}
	section(name, text)
	return nil
}

func queryPath(query string) string { return "/api/v1/query?query=" + url.QueryEscape(query) }

// finish stops the steady program and prints its result, the uptime, and the agent's values of both. Then it ends the
// agent.
func (a *agent) finish(r *running, prefixes ...string) error {
	made, err := r.stop()
	if err != nil {
		return err
	}
	section("made", made)
	prefixes = append(prefixes, "teescope_collector_success", callsFamily)
	if err := a.metrics("exposition", prefixes...); err != nil {
		return err
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return err
	}
	section("uptime", string(uptime))
	return a.stop()
}

// stop ends the agent as an init system would, and prints its log.
func (a *agent) stop() error {
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := a.cmd.Wait()
	a.log()
	return err
}

func get(path string) (string, error) { return getFrom(address + path) }

func getFrom(from string) (string, error) {
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Get(from)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", from, resp.Status, body)
	}
	return string(body), err
}

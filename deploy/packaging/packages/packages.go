// SPDX-License-Identifier: Apache-2.0

// Command packages writes a Debian and an RPM package of a static binary, without root and without the tools of either
// system.
//
//	packages -version 0.1.0 -root ../.. -shell bin/completion -time 1700000000 -o bin bin/linux-amd64/teescope
//
// The same binary, version and time give the same bytes.
package main

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// file is a file of a package.
type file struct {
	name   string // absolute
	mode   int64
	data   []byte
	config bool // changes of the administrator survive an upgrade
}

// parts are what a package is made of.
type parts struct {
	version string
	arch    string // as Debian names it: amd64 or arm64
	time    time.Time
	files   []file // sorted by directory
	scripts map[string]string
}

const (
	summary     = "shows why a workload in a trusted execution environment is slow"
	description = "teescope counts system calls, page faults, context switches and enclave events with eBPF, stores them in an embedded Prometheus and shows them on a page."
	homepage    = "https://github.com/teescope/teescope"
	license     = "Apache-2.0"
	maintainer  = "The teescope authors <teescope@users.noreply.github.com>"
)

func main() {
	version := flag.String("version", "", "the version, such as 0.1.0")
	root := flag.String("root", ".", "the directory of the sources")
	shell := flag.String("shell", "", "a directory with the files bash, zsh and fish: the output of teescope completion")
	at := flag.Int64("time", 0, "the time of all files, in seconds since 1970")
	out := flag.String("o", "bin", "the directory for the packages")
	flag.Parse()
	if *version == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "packages: name the version (-version) and at least one binary")
		os.Exit(2)
	}
	for _, binary := range flag.Args() {
		if err := write(binary, *version, *root, *shell, *out, time.Unix(*at, 0).UTC()); err != nil {
			fmt.Fprintln(os.Stderr, "packages:", err)
			os.Exit(1)
		}
	}
}

// plain matches versions that both systems accept as they are.
var plain = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*$`)

// write writes both packages of a binary.
func write(binary, version, root, shell, out string, at time.Time) error {
	if !plain.MatchString(version) {
		return fmt.Errorf("the version %q is not numbers and dots", version)
	}
	arch, err := architecture(binary)
	if err != nil {
		return err
	}
	p := parts{version: version, arch: arch, time: at}
	if p.files, err = collect(binary, root, shell); err != nil {
		return err
	}
	if p.scripts, err = scripts(filepath.Join(root, "deploy/packaging/packages/scripts")); err != nil {
		return err
	}
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch]
	for name, make := range map[string]func(parts) ([]byte, error){
		fmt.Sprintf("teescope_%s_%s.deb", version, arch):      deb,
		fmt.Sprintf("teescope-%s-1.%s.rpm", version, machine): rpm,
	} {
		data, err := make(p)
		if err == nil {
			err = os.WriteFile(filepath.Join(out, name), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// architecture returns the processor of a binary.
func architecture(name string) (string, error) {
	f, err := elf.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("%s is for the processor %v: use a binary for linux/amd64 or linux/arm64", name, f.Machine)
}

// collect reads the files of a package.
func collect(binary, root, shell string) ([]file, error) {
	all := []file{{name: "/usr/bin/teescope", mode: 0o755}}
	sources := []string{binary}
	add := func(from, to string) {
		sources = append(sources, from)
		all = append(all, file{name: to, mode: 0o644})
	}
	for _, unit := range []string{"agent", "server", "up"} {
		name := "teescope-" + unit + ".service"
		add(filepath.Join(root, "deploy/systemd", name), "/usr/lib/systemd/system/"+name)
	}
	add(filepath.Join(root, "deploy/systemd/teescope.sysusers.conf"), "/usr/lib/sysusers.d/teescope.conf")
	add(filepath.Join(root, "LICENSE"), "/usr/share/doc/teescope/copyright")
	if shell != "" {
		add(filepath.Join(shell, "bash"), "/usr/share/bash-completion/completions/teescope")
		add(filepath.Join(shell, "zsh"), "/usr/share/zsh/vendor-completions/_teescope")
		add(filepath.Join(shell, "fish"), "/usr/share/fish/vendor_completions.d/teescope.fish")
	}
	add(filepath.Join(root, "docs/user/cli.md"), "/usr/share/man/man1/teescope.1")
	for i, from := range sources {
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		switch to := all[i].name; {
		case strings.HasSuffix(to, ".service"): // the units are written for an installation by hand
			text := strings.ReplaceAll(string(data), "/usr/local/bin/teescope", "/usr/bin/teescope")
			if text == string(data) {
				return nil, fmt.Errorf("%s does not start /usr/local/bin/teescope", from)
			}
			data = []byte(text)
		case strings.HasSuffix(to, ".1"):
			if data, err = manual(data); err != nil {
				return nil, err
			}
		}
		all[i].data = data
	}
	for _, name := range []string{"agent", "server", "up"} {
		text := "# The configuration of teescope-" + name + ", a line for each key: TEESCOPE_INTERVAL=10s.\n# teescope config lists the keys.\n"
		all = append(all, file{name: "/etc/teescope/" + name + ".env", mode: 0o640, data: []byte(text), config: true})
	}
	return all, nil
}

// scripts reads what the systems run after the installation and around the removal. Both call them with other arguments, so
// each script says what it needs.
func scripts(dir string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range []string{"postinst", "prerm", "postrm"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		all[name] = string(data)
	}
	return all, nil
}

// errManual reports a command line reference of another form.
var errManual = errors.New("docs/user/cli.md has no commands")

// manual makes a page for man(1) from the reference of the command line: headings, and the help of each command as it is.
func manual(reference []byte) ([]byte, error) {
	var b strings.Builder
	b.WriteString(".TH TEESCOPE 1\n.SH NAME\nteescope \\- " + summary + "\n")
	inside, commands := false, 0
	for line := range strings.Lines(string(reference)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[inside])
		case inside:
			b.WriteString(roff(line) + "\n")
		case strings.HasPrefix(line, "## "):
			commands++
			b.WriteString(".SH " + strings.ToUpper(roff(strings.Trim(line[3:], "`"))) + "\n")
		case strings.HasPrefix(line, "### "):
			b.WriteString(".SS " + roff(strings.Trim(line[4:], "`")) + "\n")
		}
	}
	if commands == 0 || inside {
		return nil, errManual
	}
	return []byte(b.String()), nil
}

// roff escapes a line of text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		return `\&` + s
	}
	return s
}

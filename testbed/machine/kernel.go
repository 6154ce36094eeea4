// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Store is a directory that keeps unpacked kernel packages between runs.
type Store string

// Kernel is a kernel of the distribution, unpacked.
type Kernel struct {
	Release string // as uname -r says: 6.12.117+deb12-amd64
	Dir     string // the unpacked files of its packages

	packages apt
	split    bool // see series
}

// series describes the packages of a supported kernel. Debian removes old ABIs from its archive, so the newest one is
// looked up.
type series struct {
	names *regexp.Regexp
	suite string // of the archive, if it is not among those of this machine
	split bool   // the image and the list of modules have packages of their own, below /usr
}

var supported = map[string]series{
	"6.1":  {names: regexp.MustCompile(`^linux-image-(6\.1\.0-\d+-amd64)$`)},
	"6.12": {names: regexp.MustCompile(`^linux-image-(6\.12\.\d+\+deb\d+-amd64)$`)},
	// Backports keep the kernels of the last year.
	"7.2": {names: regexp.MustCompile(`^linux-image-(7\.2\.\d+\+deb13-amd64)$`), suite: "trixie-backports", split: true},
}

// Kernel finds the newest kernel of a version ("6.1", "6.12", "7.2") and unpacks it if necessary.
func (s Store) Kernel(ctx context.Context, version string) (Kernel, error) {
	which, ok := supported[version]
	if !ok {
		return Kernel{}, fmt.Errorf("no kernel %q: there are 6.1, 6.12 and 7.2", version)
	}
	var packages apt
	if which.suite != "" {
		var err error
		if packages, err = s.archive(ctx, which.suite); err != nil {
			return Kernel{}, err
		}
	}
	release, err := packages.newest(ctx, which.names)
	if err != nil {
		return Kernel{}, err
	}
	k := Kernel{Release: release, Dir: filepath.Join(string(s), "linux-image-"+release), packages: packages, split: which.split}
	return k, k.unpack(ctx)
}

// newest returns the newest release in the package lists that has an image and the headers to build a module.
func (a apt) newest(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	names, err := a.output(ctx, "", "apt-cache", "pkgnames", "linux-")
	if err != nil {
		return "", err
	}
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	best := ""
	for name := range all {
		match := pattern.FindStringSubmatch(name)
		if match == nil || !all["linux-headers-"+match[1]] {
			continue
		}
		if best == "" || exec.CommandContext(ctx, "dpkg", "--compare-versions", match[1], "gt", best).Run() == nil {
			best = match[1]
		}
	}
	if best == "" {
		return "", fmt.Errorf("no package matches %v: is there a list of packages (apt-get update)?", pattern)
	}
	return best, nil
}

// image returns the path of the kernel image.
func (k Kernel) image() string {
	if k.split {
		return filepath.Join(k.modules(), "vmlinuz")
	}
	return filepath.Join(k.Dir, "boot", "vmlinuz-"+k.Release)
}

// modules returns the directory of the package's modules.
func (k Kernel) modules() string {
	if k.split {
		return filepath.Join(k.Dir, "usr", "lib", "modules", k.Release)
	}
	return filepath.Join(k.Dir, "lib", "modules", k.Release)
}

// wanted are the modules that a machine may load: to communicate with the host, KVM, and for containers. Kernels with split
// packages have what is necessary to communicate built in.
var wanted = []string{"virtio*", "net_failover", "failover", "kvm*", "irqbypass", "ccp", "overlay", "bridge", "stp", "llc", "veth"}

// unpack unpacks the kernel unless that has happened.
func (k Kernel) unpack(ctx context.Context) error {
	if exist(k.image(), filepath.Join(k.modules(), "modules.builtin")) && k.has("arch/x86/kvm/kvm-amd") && k.has("fs/overlayfs/overlay") {
		return nil
	}
	return k.fetch(ctx)
}

// fetch downloads and unpacks the kernel.
func (k Kernel) fetch(ctx context.Context) error {
	if k.split {
		packages := []string{"linux-base-" + k.Release, "linux-binary-" + k.Release, "linux-modules-" + k.Release}
		return k.packages.unpack(ctx, k.Dir, packages, keepWanted)
	}
	args := []string{"--wildcards", "./boot/vmlinuz-*", "./boot/config-*", "./lib/modules/*/modules.builtin"}
	for _, name := range wanted {
		args = append(args, "./lib/modules/*/"+name+".ko*")
	}
	return k.packages.unpack(ctx, k.Dir, []string{"linux-image-" + k.Release}, nil, args...)
}

// keepWanted removes all other modules. The pattern of a module must match in each package, so packages that are split are unpacked
// as a whole.
func keepWanted(tree string) error {
	return filepath.WalkDir(tree, func(file string, entry fs.DirEntry, err error) error {
		name, _, module := strings.Cut(filepath.Base(file), ".ko")
		isWanted := func(pattern string) bool { is, _ := filepath.Match(pattern, name); return is }
		if err != nil || !module || entry.IsDir() || slices.ContainsFunc(wanted, isWanted) {
			return err
		}
		return os.Remove(file)
	})
}

// has reports whether a module was unpacked. Earlier versions of this program left some out.
func (k Kernel) has(module string) bool {
	found, err := filepath.Glob(filepath.Join(k.modules(), "kernel", module+".ko*"))
	return err == nil && len(found) > 0
}

// Headers unpacks what a module for the kernel is built with, and returns its build directory.
func (k Kernel) Headers(ctx context.Context) (string, error) {
	dir := filepath.Join(k.Dir, "headers")
	build := filepath.Join(dir, "usr", "src", "linux-headers-"+k.Release)
	if exist(filepath.Join(build, "Makefile")) {
		return build, nil
	}
	main := "linux-headers-" + k.Release
	depends, err := k.packages.output(ctx, "", "apt-cache", "depends", "--no-suggests", main)
	if err != nil {
		return "", err
	}
	packages := append([]string{main}, regexp.MustCompile(`linux-(?:headers-\S+-common|kbuild-\S+)`).FindAllString(depends, -1)...)
	if len(packages) != 3 {
		return "", fmt.Errorf("the headers of %s are in %v: want the headers, the common ones and kbuild", k.Release, packages)
	}
	return build, k.packages.unpack(ctx, dir, packages, func(tree string) error {
		return relocate(filepath.Join(tree, "usr", "src", "linux-headers-"+k.Release, "Makefile"))
	})
}

// relocate adapts a packaged Makefile, which includes that of the common headers by its installed path.
func relocate(makefile string) error {
	text, err := os.ReadFile(makefile)
	if err != nil {
		return err
	}
	text = bytes.Replace(text, []byte("include /usr/src/"), []byte("include $(dir $(lastword $(MAKEFILE_LIST)))../"), 1)
	return os.WriteFile(makefile, text, 0o644)
}

// unpack downloads packages and moves their files (all, or those that match) to a directory after finish has
// processed them. It unpacks in a temporary directory. So another program, or the next run after an interruption,
// finds all files or none.
func (a apt) unpack(ctx context.Context, dir string, packages []string, finish func(tree string) error, match ...string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	debs, tree := filepath.Join(temp, "debs"), filepath.Join(temp, "tree")
	if err := errors.Join(os.Mkdir(debs, 0o755), os.Mkdir(tree, 0o755)); err != nil {
		return err
	}
	if _, err := a.output(ctx, debs, "apt-get", append([]string{"download", "-q"}, packages...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil || len(files) != len(packages) {
		return fmt.Errorf("downloading %v left %v (%w)", packages, files, err)
	}
	for _, file := range files {
		script := append([]string{"-c", `deb=$1; shift; dpkg-deb --fsys-tarfile "$deb" | tar x "$@"`, "sh", file}, match...)
		if _, err := output(ctx, tree, "sh", script...); err != nil {
			return err
		}
	}
	if finish != nil {
		if err := finish(tree); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(tree, dir)
}

func exist(files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return false
		}
	}
	return true
}

// output runs a program and returns what it prints.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, problems.String())
	}
	return string(out), nil
}

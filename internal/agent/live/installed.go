// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

const (
	// maxInit bounds graminelibos/__init__.py in bytes. That of Gramine 1.9 has 500.
	maxInit = 64 << 10
	// oldestPython and newestPython are the minor versions of Python whose folders are searched.
	oldestPython, newestPython = 6, 15
)

// installed returns the version of Gramine that a process runs in. It reads the version from the Python package beside Gramine's
// loader, as the process sees it and with the rights of its user. Several packages give a range of versions. The result is nil if
// the version is not known.
func installed(p hostfs.Process) *manifest.Versions {
	exe, err := p.Link("exe")
	if err != nil {
		return nil
	}
	var all *manifest.Versions
	for _, folder := range packages(exe) {
		file := manifestFile{name: folder + "/graminelibos/__init__.py"}
		if file.inRoot(p, maxInit) != nil {
			continue
		}
		s, line, ok := manifest.InstalledVersion(file.text)
		if !ok {
			continue
		}
		v, err := manifest.ParseVersion(s, fmt.Sprintf("%s:%d", file.name, line))
		switch {
		case err != nil:
		case all == nil:
			all = &v
		case v.Least < all.Least || v.Most > all.Most: // packages for several Pythons: which belongs to the loader is not known
			all.Least, all.Most, all.Source = min(all.Least, v.Least), max(all.Most, v.Most), all.Source+", "+v.Source
		}
	}
	return all
}

// packages returns the folders of Python packages under the prefix of an installed Gramine loader, or nil for another program.
// Libraries and packages are in lib or lib64, by the rules of the distribution. Debian's own packages are for every Python 3.
// Packages that are built for /usr/local are in dist-packages of one version.
func packages(exe string) []string {
	above := strings.LastIndex(exe, "/gramine/")
	if above < 0 {
		return nil
	}
	libraries := exe[:above+1]
	end := max(strings.LastIndex(libraries, "/lib/"), strings.LastIndex(libraries, "/lib64/"))
	if end < 0 {
		return nil
	}
	var all []string
	for _, lib := range []string{"/lib", "/lib64"} {
		python := exe[:end] + lib + "/python3"
		all = append(all, python+"/dist-packages")
		for minor := newestPython; minor >= oldestPython; minor-- {
			all = append(all, fmt.Sprintf("%s.%d/site-packages", python, minor), fmt.Sprintf("%s.%d/dist-packages", python, minor))
		}
	}
	return all
}

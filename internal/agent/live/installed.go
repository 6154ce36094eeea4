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
	// oldestPython and newestPython are the minor versions of Python whose folders are looked into.
	oldestPython, newestPython = 6, 15
)

// installed returns the version of Gramine that a process runs in, which the Python package beside Gramine's loader says. That is read as
// the process sees it, by its user's rights. Several packages are a range of versions. It returns nil if it is not known.
func installed(p hostfs.Process) *manifest.Versions {
	exe, err := p.Link("exe")
	if err != nil {
		return nil
	}
	prefix, _, ok := strings.Cut(exe, "/lib/")
	if !ok || !strings.Contains(exe, "/gramine/") {
		return nil
	}
	folders := []string{"python3/dist-packages"}
	for minor := newestPython; minor >= oldestPython; minor-- {
		folders = append(folders, fmt.Sprintf("python3.%d/site-packages", minor))
	}
	var all *manifest.Versions
	for _, folder := range folders {
		file := manifestFile{name: prefix + "/lib/" + folder + "/graminelibos/__init__.py"}
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

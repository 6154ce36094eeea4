// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"path"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/render"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// leastMoved is the least that all calls of a trace must have moved, in bytes: less is a start. Proposed.
const leastMoved = 1 << 20

// movedMuch returns advice if a part of what a trace moved is large, or nil. The words follow "bytes that".
func movedMuch(f *advise.Facts, words string, part func(*read.Traffic) read.Moved) *advise.Advice {
	if !f.Has(advise.Traffic) {
		return nil
	}
	all, some := f.Traffic.All, part(f.Traffic)
	if all.Bytes < leastMoved || some.Calls == 0 || float64(some.Bytes) < judged.EncryptedShare*float64(all.Bytes) {
		return nil
	}
	ratio := float64(some.Bytes) / float64(all.Bytes)
	a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the bytes that the host's system calls moved %s, which Gramine encrypts and decrypts.", 100*ratio, words))
	source := at(f.CallsFile, some.Line)
	a.Seen = []advise.Seen{
		seen("share of the bytes that "+words, ratio, "ratio", source), seen("bytes that "+words, float64(some.Bytes), "bytes", source),
		seen("calls that moved them", float64(some.Calls), "1", source), seen("all bytes", float64(all.Bytes), "bytes", at(f.CallsFile, all.Line)),
	}
	a.Why += fmt.Sprintf(" A call moved %s on average.", render.Value(float64(some.Bytes)/float64(some.Calls), "bytes"))
	return a
}

// within returns a function that reports whether a file of the host is one of these files or in one of these folders. A trace does not say from
// where relative names count, so these may begin at any folder.
func within(files []string) func(name string) bool {
	return func(name string) bool {
		for _, file := range files {
			file = path.Clean(file)
			switch {
			case path.IsAbs(file):
				if name == file || strings.HasPrefix(name, strings.TrimSuffix(file, "/")+"/") {
					return true
				}
			case strings.HasSuffix(name, "/"+file) || strings.Contains(name, "/"+file+"/"):
				return true
			}
		}
		return false
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// largeManifest is the size above which parsing a manifest is worth a remark, in bytes. Proposed; Gramine's guide says
// "several MBs".
const largeManifest = 1 << 20

func manifestSize() advise.Rule {
	return advise.Rule{
		ID: "manifest-size", Title: "the manifest is large", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "size of the manifest", Threshold: "over 1 MiB", Source: "proposed; " + guide + ": several MBs slow the start",
		Advice: "fewer trusted files",
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Manifest.Bytes <= largeManifest {
				return nil
			}
			files := f.Manifest.TrustedFiles()
			a := configured(analysis.Info, analysis.Possible, "Gramine parses the manifest at each start, and in each child process.")
			a.Seen = []advise.Seen{seen("size of the manifest", float64(f.Manifest.Bytes), "bytes", f.Manifest.Name), seen("trusted files", float64(len(files)), "1", f.Manifest.Name)}
			a.Do = []string{"trust the files that the application opens, not whole trees such as /usr/lib/: a directory is expanded to all its files"}
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package web holds the built page, so that the binary serves it without any file beside it. It does not serve anything
// itself: that is internal/server/httpapi.
package web

import (
	"embed"
	"fmt"
	"io/fs"
)

// dist is written by `npm run build` and committed; CI builds it again and
// compares.
//
//go:embed all:dist
var dist embed.FS

// FS gives the files of the page: index.html and icon.svg at the top, all else
// under assets/, under names that stay the same when the content changes.
func FS() fs.FS {
	page, err := fs.Sub(dist, "dist")
	if err != nil {
		// fs.Sub errs on invalid names only, and this one is a constant.
		panic(fmt.Sprintf("opening the embedded page: %v", err))
	}
	return page
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"

	"github.com/teescope/teescope/web"
)

// page is the built page.
func page() fs.FS { return web.FS() }

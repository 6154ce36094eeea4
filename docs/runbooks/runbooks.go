// SPDX-License-Identifier: Apache-2.0

// Package runbooks holds what to do about each alert, one page each, so that the server can show what its alerts link to. It
// does not hold code.
package runbooks

import "embed"

// Files are the pages, *.md.
//
//go:embed *.md
var Files embed.FS

// SPDX-License-Identifier: Apache-2.0

// Package user holds the reference of metrics, so that the server can show what the help of its panels leads to. It does not
// hold code.
package user

import _ "embed"

// Metrics is metrics.md: one section a family, headed by its name.
//
//go:embed metrics.md
var Metrics string

// SPDX-License-Identifier: Apache-2.0

// Package cli implements the commands that run no service: analyses, reports, rule files, dashboards. Larger ones have
// a package below it.
//
// It does not depend on flags, which belong to cmd/teescope, or on services, which internal/app composes.
package cli

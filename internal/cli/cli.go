// SPDX-License-Identifier: Apache-2.0

// Package cli implements the commands that run no service: analyses, reports, rule files, dashboards. Larger ones have
// a package below it.
//
// It refuses to know flags, which belong to cmd/teescope, and services, which internal/app composes.
package cli

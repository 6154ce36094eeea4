// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands do that run no service: analyses, reports, rule files, dashboards. Larger ones have
// a package below it.
//
// It refuses to know flags, which belong to cmd/teescope, and the services, which internal/app composes.
package cli

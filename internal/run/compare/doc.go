// SPDX-License-Identifier: Apache-2.0

// Package compare compares recorded runs: which metrics differ, by how much, whether that is noise, and what accounts for
// the time. One repetition is one observation.
//
// It does not open files or define flags. It writes no report: internal/cli/compare does.
package compare

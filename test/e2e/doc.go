// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the real teescope binary on the real kernel with real programs. It compares the exposition with
// independent sources: /proc, getrusage, strace, the programs' own statistics, and a real Prometheus.
//
// It does not import any package of teescope. Like a user, it knows only the command line, the exposition and the HTTP API.
// The tests have the build tag e2e and need root:
//
//	make e2e
//
// TEESCOPE_BIN names the binary under test; without it the tests build one. No tolerance is wider than the project's
// promise. A failing test is a fault of the product or of the test.
package e2e

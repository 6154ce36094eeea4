// SPDX-License-Identifier: Apache-2.0

// Package e2e drives the real teescope binary on the real kernel, with real programs, and compares
// what it exposes with what independent sources say: /proc, getrusage, strace, the programs' own
// statistics, and a real Prometheus.
//
// It refuses to import any room of teescope: it knows the command line, the exposition and the HTTP
// API, as a user does. The tests have the build tag e2e and need root:
//
//	make e2e
//
// TEESCOPE_BIN names the binary under test; without it the tests build one. No tolerance here is
// wider than the project's promise: a test that fails is a fault of the product or of the test.
package e2e

// SPDX-License-Identifier: Apache-2.0

// Package record records a command, or programs that run already, into run files: it asks an agent for its metrics while
// the command runs, finds the workloads that matter, and reads what the benchmark prints. A sweep records a command with
// many settings.
//
// An agent counts the events. The package does not evaluate figures.
package record

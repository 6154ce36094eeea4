// SPDX-License-Identifier: Apache-2.0

// Package compose tests deploy/compose: the privileges of the agent, who can reach what, and that all named files exist. It
// contains no code.
package compose

// SPDX-License-Identifier: Apache-2.0

// Package vm runs the real binary on stock Debian kernels in QEMU (test tag vm): every probe attaches, and a known program
// is counted exactly. It does not test anything that this machine's own kernel can show.
package vm

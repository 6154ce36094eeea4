// SPDX-License-Identifier: Apache-2.0

// Package machine boots a stock Debian kernel in QEMU, runs one command in it, and returns the command's output,
// its exit status and files. The testbed uses it for its virtual SGX machine, and test/vm for machines without
// SGX.
//
// It does not install anything: kernels are downloaded as packages, and unpacked and kept under .cache/vm. It does not
// depend on the programs inside.
package machine

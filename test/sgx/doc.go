// SPDX-License-Identifier: Apache-2.0

// Package sgx runs the real binary in the virtual SGX machine (test tag sgx). It runs the module's self-test and every
// enclave program, and compares their own reports with the module's ground truth. Then it compares teescope's figures of the
// in-tree driver with what the machine has executed. It does not test what needs no enclave.
package sgx

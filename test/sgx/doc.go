// SPDX-License-Identifier: Apache-2.0

// Package sgx tries the real binary in the virtual SGX machine (test tag sgx). It runs the module's self-test
// and every enclave program, and compares what the programs say of themselves with the module's ground truth;
// then what teescope says of the in-tree driver with what the machine has executed. It refuses to test what
// needs no enclave.
package sgx

// SPDX-License-Identifier: Apache-2.0

package boundary

import _ "embed"

//go:embed transition.bpf.o
var object []byte

// ecallRuntime is the number of the SDK's own ECALLs, such as initialising the enclave (ECALL_RUNTIME in transition.h).
const ecallRuntime = 1<<32 - 1

// role says what the kernel side takes from a call's arguments (enum role).
type role uint8

// ends says in a cookie that the calls at the site may be timed.
const ends = 1 << 47

// cookie is what the kernel side is told by the probe at a site.
func cookie(file int, r role, cost uint8, site uint32) uint64 {
	return uint64(file)<<48 | uint64(r)<<40 | uint64(cost)<<32 | uint64(site)
}

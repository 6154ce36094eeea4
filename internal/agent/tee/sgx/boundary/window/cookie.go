// SPDX-License-Identifier: Apache-2.0

package window

// The flags of a cookie.
const (
	Returns = 1 << 47 // the returns of calls at the site may be probed too
	Inward  = 1 << 46 // the calls are ECALLs
	Crosses = 1 << 45 // each call is an EENTER and an EEXIT
	Pairs   = 1 << 44 // it is counted which call follows which
)

// Cookie encodes the data of a probe at a site of a file for the kernel side: which arguments it reads (role),
// the cost of a hit, and the number of the site (COOKIE_* of the kernel side).
func Cookie(file int, role, cost uint8, site uint32) uint64 {
	return uint64(file)<<48 | uint64(role)<<40 | uint64(cost)<<32 | uint64(site)
}

// NoFile is the cookie of a probe whose hits are not counted.
const NoFile = maxFiles << 48

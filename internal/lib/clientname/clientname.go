// SPDX-License-Identifier: Apache-2.0

// Package clientname decides which addresses are one client, for every limit per client, and limits concurrent requests of clients.
//
// It does not read requests, because a proxy's headers can be forged.
package clientname

import "net/netip"

// Of returns the client at an address with a port. All loopback addresses are one client, because a program of this machine
// may choose any of them. Addresses of IPv6 are cut to 64 bits, because a host may choose the rest. Another text, such as the
// user at a unix socket, is returned unchanged.
func Of(address string) string {
	from, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	ip := from.Addr().Unmap()
	if ip.IsLoopback() {
		return "127.0.0.1"
	}
	if ip.Is6() {
		if prefix, err := ip.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return ip.String()
}

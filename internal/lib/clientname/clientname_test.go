// SPDX-License-Identifier: Apache-2.0

package clientname

import "testing"

func TestOf(t *testing.T) {
	for from, want := range map[string]string{
		"127.0.0.2:1": "127.0.0.1", "[::1]:1": "127.0.0.1", "[::ffff:127.1.2.3]:1": "127.0.0.1", "10.0.0.1:1": "10.0.0.1",
		"[2001:db8:1:2::3]:1": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::9]:2": "2001:db8:1:2::/64", "user 0": "user 0",
	} {
		if got := Of(from); got != want {
			t.Errorf("Of(%s) = %s, want %s", from, got, want)
		}
	}
}

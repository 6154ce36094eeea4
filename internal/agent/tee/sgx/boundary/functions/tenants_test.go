// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"fmt"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// A user and a control group have separate numbers. Containers of one user share one number, and users of one container share
// another. A number is free again when no process has it.
func TestOwnersHaveNumbersOfTheirUserAndGroup(t *testing.T) {
	all := &tenants{numbers: map[string]uint32{}, processes: map[uint32]owner{}}
	join := func(tgid, user uint32, group string) owner {
		all.processes[tgid] = all.number(tenant.Tenant{User: user, Group: group})
		return all.processes[tgid]
	}
	if of := join(1, 0, ""); of != (owner{User: tenantRoot, Group: tenantRoot}) {
		t.Errorf("root outside of control groups has %+v", of)
	}
	a, b, c := join(2, 1000, "/a"), join(3, 1000, "/b"), join(4, 1001, "/a")
	if a.User != b.User || a.Group == b.Group || a.Group != c.Group || a.User == c.User {
		t.Errorf("one user in two groups has %+v and %+v, another one in the first %+v", a, b, c)
	}
	for _, of := range []owner{a, b, c} {
		if of.User < tenantFirst || of.Group < tenantFirst || of.User == of.Group {
			t.Errorf("%+v", of)
		}
	}
	for i := range uint32(2 * maxTenants) { // one after the other
		of := join(5, 2000+i, fmt.Sprintf("/%d", i))
		if of.User == tenantUnknown || of.Group == tenantUnknown || of.User == of.Group || of.User == a.User || of.Group == a.Group {
			t.Fatalf("owner %d has %+v", i, of)
		}
	}
	for i := range uint32(maxTenants) { // at once
		join(10+i, 5000+i, "")
	}
	if of := join(9, 9999, "/other"); of.User != tenantUnknown && of.Group != tenantUnknown {
		t.Errorf("an owner too many has %+v", of)
	}
}

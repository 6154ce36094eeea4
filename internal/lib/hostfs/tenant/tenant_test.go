// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"strings"
	"testing"
)

func TestGroupsThatAProcessCannotChoose(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for path, want := range map[string]string{
		"":  "",
		"/": "",
		"/user.slice/user-1000.slice/session-3.scope":                                "/user.slice/user-1000.slice",
		"/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope":            "/user.slice/user-1000.slice",
		"/system.slice/nginx.service/worker":                                         "/system.slice/nginx.service",
		"/docker/" + id + "/mine/deeper":                                             "/docker/" + id,
		"/kubepods/burstable/pod01234567-89ab-cdef-0123-456789abcdef/" + id + "/own": "/kubepods/burstable/pod01234567-89ab-cdef-0123-456789abcdef",
		"/lxc.payload.web/system.slice/x":                                            "/lxc.payload.web",
		"/batch/job7":                                                                "/batch/job7",
	} {
		if got := group(path); got != want {
			t.Errorf("the group of %q is %q, want %q", path, got, want)
		}
	}
}

func take(q *Quota, t Tenant, most int) (n int) {
	for range most {
		if q.Take(t) == nil {
			n++
		}
	}
	return n
}

func TestOneTenantLeavesRoom(t *testing.T) {
	q := NewQuota(64)
	first, second := Tenant{1000, "/a"}, Tenant{1001, "/b"}
	if n := take(q, first, 100); n != 32 {
		t.Errorf("one tenant has %d of 64 places, want half", n)
	}
	if n := take(q, second, 100); n != 16 {
		t.Errorf("the second tenant has %d places, want half of the rest", n)
	}
	if n := take(q, Tenant{}, 100); n != 16 {
		t.Errorf("root has %d places, want all others", n)
	}
	if q.Refused != 68+84+84 {
		t.Errorf("%d requests were refused", q.Refused)
	}
	for range 32 {
		q.Give(first)
	}
	if n := take(q, second, 100); n != 8 {
		t.Errorf("the second tenant gets %d more places, want 8", n)
	}
}

func TestAUserWithManyGroupsIsOneUser(t *testing.T) {
	q := NewQuota(8)
	n := 0
	for _, group := range []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"} {
		n += take(q, Tenant{1000, group}, 1)
	}
	if n != 4 {
		t.Errorf("a user with 8 groups has %d of 8 places, want half", n)
	}
}

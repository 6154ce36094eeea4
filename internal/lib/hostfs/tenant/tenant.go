// SPDX-License-Identifier: Apache-2.0

// Package tenant identifies the tenant of a process, and divides limited resources between tenants. It does not depend on
// the resource.
package tenant

import (
	"errors"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
)

// Tenant is the owner of a process: a user, and a control group that its user cannot leave.
type Tenant struct {
	User  uint32
	Group string
}

// Of returns the tenant of a process. It reads no file that the process can block. It returns the zero value, which is
// root outside of all control groups, when the process has ended.
func Of(p hostfs.Process, names cgroup.Hierarchy) Tenant {
	user, ok := p.User()
	if !ok {
		return Tenant{}
	}
	path, _ := p.Cgroup(names.Controller()) // empty where it cannot be read
	return Tenant{User: user, Group: group(path)}
}

// group returns the part of a control group's path that the processes in it cannot choose: up to the login user, unit,
// pod or container. They may create groups below it.
func group(path string) string {
	end := 0
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		end += 1 + len(name)
		if owned(name) {
			return path[:min(end, len(path))]
		}
	}
	if path == "/" {
		return ""
	}
	return path
}

func owned(name string) bool {
	const containerID, podUID = 64, 36
	switch {
	case strings.HasSuffix(name, ".service"), strings.HasSuffix(name, ".scope"), strings.HasPrefix(name, "lxc.payload."):
		return true
	case strings.HasPrefix(name, "user-") && strings.HasSuffix(name, ".slice"):
		return true
	case len(name) > podUID && strings.Contains(name, "pod"):
		return true
	}
	return len(name) >= containerID && strings.Trim(name[len(name)-containerID:], "0123456789abcdef") == ""
}

// Quota divides a limited number of places between tenants. A tenant gets a place while it has fewer places than are
// free. So one tenant takes at most half, two take a third each, and a place is left for the next one. These are the
// dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on Networking 6, 1998), with a factor of 1. Root, and
// processes outside of all control groups, are limited only by the other one of the two.
//
// Quota is not safe for concurrent use.
type Quota struct {
	Refused uint64 // requests that were refused

	limit  int
	used   int
	users  map[uint32]int
	groups map[string]int
}

// NewQuota returns a quota with all places free.
func NewQuota(limit int) *Quota {
	return &Quota{limit: limit, users: map[uint32]int{}, groups: map[string]int{}}
}

// ErrQuota means that a user or control group has its quota.
var ErrQuota = errors.New("its user or control group has reached its quota")

// ErrFull means that the limit for all users and control groups is reached.
var ErrFull = errors.New("the limit for all users and control groups is reached")

// Take takes a place for a tenant. It returns ErrQuota or ErrFull if there is none for it.
func (q *Quota) Take(t Tenant) error {
	free := q.limit - q.used
	switch {
	case free <= 0:
		q.Refused++
		return ErrFull
	case t.User != 0 && q.users[t.User] >= free, t.Group != "" && q.groups[t.Group] >= free:
		q.Refused++
		return ErrQuota
	}
	q.used++
	q.users[t.User]++
	q.groups[t.Group]++
	return nil
}

// Give returns a place of a tenant.
func (q *Quota) Give(t Tenant) {
	q.used--
	if q.users[t.User]--; q.users[t.User] <= 0 {
		delete(q.users, t.User)
	}
	if q.groups[t.Group]--; q.groups[t.Group] <= 0 {
		delete(q.groups, t.Group)
	}
}

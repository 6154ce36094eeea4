// SPDX-License-Identifier: Apache-2.0

package reader

import (
	"time"

	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// Limits of the time in which reads of one tenant's processes sleep. Reads follow each other in several places, and a process can
// answer just before its deadline: a thousand of them would delay the reads of all others by minutes.
const (
	// slowTime is how long reads of a tenant may sleep at once.
	slowTime = time.Second
	// slowShare is the fraction of the time by which that is refilled.
	slowShare = 0.05
)

// slowness is the time in which reads of each user and each control group have slept. As with other limits, root and processes
// outside of all control groups have none.
type slowness struct {
	users  map[uint32]*account
	groups map[string]*account
}

// account is a time that falls at slowShare.
type account struct {
	spent time.Duration
	as    time.Time // of spent
}

func newSlowness() slowness {
	return slowness{users: map[uint32]*account{}, groups: map[string]*account{}}
}

// none reports whether no tenant has slow processes.
func (s *slowness) none() bool { return len(s.users) == 0 && len(s.groups) == 0 }

// refuses reports whether a tenant has used its time.
func (s *slowness) refuses(t tenant.Tenant, now time.Time) bool {
	drain(s.users, now)
	drain(s.groups, now)
	user, group := s.users[t.User], s.groups[t.Group]
	return user != nil && user.spent >= slowTime || group != nil && group.spent >= slowTime
}

// drain lets the accounts fall, and removes those that are empty.
func drain[K comparable](accounts map[K]*account, now time.Time) {
	for of, a := range accounts {
		a.spent -= time.Duration(slowShare * float64(now.Sub(a.as)))
		a.as = now
		if a.spent <= 0 {
			delete(accounts, of)
		}
	}
}

// add notes that a read of a tenant has slept.
func (s *slowness) add(t tenant.Tenant, asleep time.Duration, now time.Time) {
	if t.User != 0 {
		charge(s.users, t.User, asleep, now)
	}
	if t.Group != "" {
		charge(s.groups, t.Group, asleep, now)
	}
}

func charge[K comparable](accounts map[K]*account, of K, asleep time.Duration, now time.Time) {
	drain(accounts, now)
	if accounts[of] == nil {
		accounts[of] = &account{as: now}
	}
	accounts[of].spent += asleep
}

// charge notes that a read of a tenant's process has slept.
func (p *Pool) charge(of tenant.Tenant, asleep time.Duration) {
	if asleep == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow.add(of, asleep, time.Now())
}

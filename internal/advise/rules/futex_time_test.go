// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/teescope/teescope/internal/advise"

// inFutex are so many of 10 threads that are in system calls, and the rate of their calls of futex.
func inFutex(threads, calls float64) *advise.Locks {
	return &advise.Locks{Calls: calls, Futex: threads, All: 10, Source: "server"}
}

func futexTimeCases() ruleCases {
	return ruleCases{
		positive: []given{
			{calls: "futex 30, read 70"},
			{locks: inFutex(3, 1000)},
			{calls: "futex 1, read 99", locks: inFutex(6.3, 5000)}, // the time decides
		},
		near: []given{
			{calls: "futex 29, read 71"},
			{locks: inFutex(2.9, 1000)},
			{locks: inFutex(9, 999)},                                 // threads that wait for work
			{calls: "futex 99, read 1", locks: inFutex(0.1, 50_000)}, // many calls that take no time
		},
		negative: []given{
			{calls: "read 1"},
			{locks: inFutex(0, 0)},
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package sampling estimates the number of events that are counted for a part of the time only. It also decides how
// much is counted, so that counting stays within a budget of CPU time.
//
// A DutyCycle opens one window at a random time in each cycle. An Estimator scales up the counts of a group in the
// window, and corrects them by the CPU time that the group used inside and outside of the window. A Variance is the
// error of these estimates. A Governor chooses a Level and the length of windows from the cost of each event.
//
// It does not depend on the source of the counts, the names of groups, or the exposition of numbers. It uses only words
// (counters), CPU times and costs.
package sampling

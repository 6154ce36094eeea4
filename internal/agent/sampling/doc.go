// SPDX-License-Identifier: Apache-2.0

// Package sampling estimates how many events happen while they are counted for a part of the time only, and decides how
// much is counted, so that counting stays within a budget of CPU time.
//
// A DutyCycle opens one window at a random time in each cycle. An Estimator scales up what a group of processes was
// counted to do in the window, and corrects it by the CPU time that the group used inside and outside of it. A Variance
// is the error of these estimates. A Governor chooses a Level, and how long windows are, from what each event costs.
//
// It refuses to know what counts the events, what a group is called, and how numbers are exposed: it knows words
// (counters), CPU times and costs only.
package sampling

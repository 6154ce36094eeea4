// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
)

// simulated makes a use in parts of the limit, each minute for nine days.
type simulated func(random *rand.Rand) []float64

const (
	day      = 24 * 60
	simDays  = 9
	simStep  = 10 // minutes
	simWidth = 5
)

// walk has steps of this deviation in an hour, between 0.2 and 0.95.
func walk(sd float64) simulated {
	return func(random *rand.Rand) []float64 {
		x := make([]float64, simDays*day)
		v := 0.3 + 0.5*random.Float64()
		for i := range x {
			v += sd / math.Sqrt(60) * random.NormFloat64()
			if v > 0.95 {
				v = 1.9 - v
			}
			v = max(v, 0.4-v)
			x[i] = v
		}
		return x
	}
}

// ar1 has a mean, a deviation and a time in minutes in which it forgets.
func ar1(mean, sd, tau float64) simulated {
	return func(random *rand.Rand) []float64 {
		x := make([]float64, simDays*day)
		rho, v := math.Exp(-1/tau), random.NormFloat64()
		for i := range x {
			v = rho*v + math.Sqrt(1-rho*rho)*random.NormFloat64()
			x[i] = mean + sd*v
		}
		return x
	}
}

// diurnal follows the hours of the day, each day with another height, and half of it at weekends.
func diurnal(noise simulated) simulated {
	return func(random *rand.Rand) []float64 {
		x := noise(random)
		height := 1.0
		for i := range x {
			if i%day == 0 {
				height = 1 + 0.1*random.NormFloat64()
				if i/day%7 >= 5 {
					height /= 2
				}
			}
			x[i] += 0.2 * height * (1 - math.Cos(2*math.Pi*float64(i%day)/day))
			x[i] = min(x[i], 0.99)
		}
		return x
	}
}

// sawtooth is a collector: even allocation, and a run at a height that varies.
func sawtooth(minutes float64) simulated {
	return func(random *rand.Rand) []float64 {
		x := make([]float64, simDays*day)
		v, top, rate := 0.3, 0.8, 0.5/minutes
		for i := range x {
			v += rate * (0.5 + random.Float64())
			if v > top {
				v, top = 0.3+0.02*random.NormFloat64(), 0.8+0.03*random.NormFloat64()
				rate = 0.5 / minutes * math.Exp(0.3*random.NormFloat64())
			}
			x[i] = v
		}
		return x
	}
}

// minima returns the values of the trend at a minute.
func minima(x []float64, at int) (values []float64) {
	for i := range 18 {
		if end := at - (17-i)*simStep; end >= simWidth {
			values = append(values, slices.Min(x[end-simWidth:end]))
		}
	}
	return values
}

// forecasts returns how many findings begin on the first day, which has no history, and later. The rule looks every ten
// minutes. A finding that was away for an hour begins again.
func forecasts(x []float64) (first, later int) {
	open := -100
	for at := 90; at < len(x); at += simStep {
		g, ok := growthOf(engine.Workload{Window: simWidth * 60}, minima(x, at), simStep*time.Minute)
		if !ok {
			continue
		}
		peak := 0.0
		for i := max(0, at-day); i < at-180; i += 10 {
			peak = max(peak, x[i])
		}
		if at > 180 && g.fellBefore(peak) {
			continue
		}
		if at-open > 60 {
			if at < day {
				first++
			} else {
				later++
			}
		}
		open = at
	}
	return first, later
}

// Healthy load has few forecasts, and a leak has one. The rates that this prints are in docs/decisions/diagnosis.md.
func TestForecastsOfHealthyLoad(t *testing.T) {
	const n = 12 // of each load; the seeds are fixed, so the counts are always the same
	for _, one := range []struct {
		name        string
		load        simulated
		first, week float64 // the most findings on the first day, and in each week after it
	}{
		{"random walk, 0.01 an hour", walk(0.01), 0.5, 0.5},
		{"random walk, 0.03 an hour", walk(0.03), 0.5, 0.5},
		{"random walk, 0.1 an hour", walk(0.1), 0.5, 0.5},
		{"around 0.7, sd 0.05, 10 minutes", ar1(0.7, 0.05, 10), 0.5, 0.5},
		{"around 0.7, sd 0.05, 1 hour", ar1(0.7, 0.05, 60), 0.5, 0.5},
		{"around 0.7, sd 0.05, 10 hours", ar1(0.7, 0.05, 600), 0.5, 0.5},
		{"around 0.7, sd 0.1, 1 hour", ar1(0.7, 0.1, 60), 0.5, 0.5},
		{"around 0.85, sd 0.05, 1 hour", ar1(0.85, 0.05, 60), 0.5, 0.5},
		{"days and weekends, 0.4 to 0.8", diurnal(ar1(0.4, 0.02, 60)), 2, 1.5},
		{"collector, each 15 minutes", sawtooth(15), 0.5, 0.5},
		{"collector, each 2 hours", sawtooth(120), 1.5, 0.5},
		{"collector, each 6 hours", sawtooth(360), 2, 0.5},
		{"collector, each 17 hours", sawtooth(1000), 1.5, 1.5},
	} {
		var first, later int
		for seed := range uint64(n) {
			f, l := forecasts(one.load(rand.New(rand.NewPCG(seed, 1))))
			first, later = first+f, later+l
		}
		day, week := float64(first)/n, float64(later)/n*7/(simDays-1)
		t.Logf("%-32s %.2f on the first day, then %.2f a week", one.name, day, week)
		if day > one.first || week > one.week {
			t.Errorf("%s: more than %v and %v", one.name, one.first, one.week)
		}
	}
}

func TestForecastsOfLeaks(t *testing.T) {
	for name, load := range map[string]simulated{
		"slow":                       leak(0.03, ar1(0, 0.01, 10)),
		"slow, with noise":           leak(0.03, ar1(0, 0.02, 60)),
		"fast, with noise":           leak(0.1, ar1(0, 0.02, 60)),
		"under a frequent collector": leak(0.1, tooth(0.1, 15)),
		"under a rare collector":     leak(0.1, tooth(0.1, 45)),
	} {
		found := 0
		for seed := range uint64(12) {
			if _, n := forecasts(load(rand.New(rand.NewPCG(seed, 1)))); n > 0 {
				found++
			}
		}
		if t.Logf("%s: %d of 12 leaks have a forecast", name, found); found < 10 {
			t.Errorf("%s: only %d of 12", name, found)
		}
	}
}

// The interval of a forecast has the time at which the leak reaches the limit.
func TestForecastsHold(t *testing.T) {
	const rate, at, n = 0.1, 200, 150 // of the limit an hour; minutes; series
	for name, noise := range map[string]simulated{
		"noise of 10 minutes":  ar1(0, 0.02, 10),
		"noise of an hour":     ar1(0, 0.02, 60),
		"a frequent collector": tooth(0.1, 15),
		"a rare collector":     tooth(0.1, 45),
	} {
		held, made := 0, 0
		for seed := range uint64(n) {
			x := noise(rand.New(rand.NewPCG(seed, 5)))[:at]
			for i := range x {
				x[i] += 0.3 + rate*float64(i)/60
			}
			g, ok := growthOf(engine.Workload{Window: simWidth * 60}, minima(x, at), simStep*time.Minute)
			if !ok {
				continue
			}
			made++
			hours := (1-0.3)/rate - float64(at)/60
			if truth := time.Duration(hours * float64(time.Hour)); g.sooner <= truth && truth <= g.later {
				held++
			}
		}
		if t.Logf("%s: %d of %d intervals hold", name, held, made); made < n/2 || float64(held) < 0.8*float64(made) {
			t.Errorf("%s: %d of %d intervals hold", name, held, made)
		}
	}
}

// leak grows by a part of the limit an hour from the second day on.
func leak(perHour float64, noise simulated) simulated {
	return func(random *rand.Rand) []float64 {
		x := noise(random)
		for i := range x {
			x[i] += 0.2 + perHour*float64(max(0, i-day))/60
			if x[i] >= 0.9 {
				return x[:i]
			}
		}
		return x
	}
}

// tooth rises and falls back to zero.
func tooth(height, minutes float64) simulated {
	return func(random *rand.Rand) []float64 {
		x := make([]float64, simDays*day)
		v := 0.0
		for i := range x {
			if v += height / minutes * (0.5 + random.Float64()); v > height {
				v = 0
			}
			x[i] = v
		}
		return x
	}
}

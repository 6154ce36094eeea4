// SPDX-License-Identifier: Apache-2.0

package top

import (
	"slices"
	"strconv"
)

// Crossings are how often a thread or process has crossed the boundary of its enclave, since teescope counts that.
type Crossings struct {
	Enters float64  `json:"eenter"`
	Exits  float64  `json:"eexit"`
	AEXs   *float64 `json:"aex"`
	Source string   `json:"source"`
}

// CrossingProcess has the crossings of a process, with those of threads that have ended.
type CrossingProcess struct {
	PID int `json:"pid"`
	Crossings
}

// Pair is how often a call followed another one, since calls are timed.
type Pair struct {
	Kind   string  `json:"kind"`
	From   string  `json:"from"`
	To     string  `json:"to"`
	N      float64 `json:"n"`
	Mean   float64 `json:"mean_seconds"`
	Advice string  `json:"advice"`
}

// cleanCrossings makes the names in a list printable.
func (l *ThreadList) cleanCrossings() {
	for i := range l.Processed {
		l.Processed[i].Source = clean(l.Processed[i].Source)
	}
	for i := range l.Pairs {
		p := &l.Pairs[i]
		p.Kind, p.From, p.To, p.Advice = clean(p.Kind), clean(p.From), clean(p.To), clean(p.Advice)
	}
}

// crosses reports whether a thread has crossings.
func (l *ThreadList) crosses() bool {
	return l != nil && slices.ContainsFunc(l.List, func(t Thread) bool { return t.Crossings != nil })
}

// crossingRates are rates of crossings a second. Those that were not measured are NaN.
type crossingRates struct{ Enters, Exits, AEXs float64 }

func ratesOf(before, after *Crossings, over float64) crossingRates {
	if before == nil || after == nil || over <= 0 || before.Source != after.Source {
		return crossingRates{unknown(), unknown(), unknown()}
	}
	return crossingRates{rise(&before.Enters, &after.Enters, over), rise(&before.Exits, &after.Exits, over), rise(before.AEXs, after.AEXs, over)}
}

// processRow is a process between two lists.
type processRow struct {
	pid    int
	source string
	crossingRates
}

// compareProcesses returns rows for the newer of two lists. before may be nil.
func compareProcesses(before, after *ThreadList) []processRow {
	old, over := map[int]*Crossings{}, 0.0
	if before != nil {
		over = after.Time.Sub(before.Time).Seconds()
		for i := range before.Processed {
			old[before.Processed[i].PID] = &before.Processed[i].Crossings
		}
	}
	rows := make([]processRow, 0, len(after.Processed))
	for _, p := range after.Processed {
		rows = append(rows, processRow{p.PID, p.Source, ratesOf(old[p.PID], &p.Crossings, over)})
	}
	return rows
}

// pairWords are the words for kinds of pairs, and adviceWords those for advice. Others are shown as they are.
var (
	pairWords = map[string]string{
		"ocall_in_ecall": "starts in", "last_in_ecall": "ends in", "next_ocall": "next", "next_ecall": "next", "ocall": "lasts", "ecall": "lasts",
	}
	adviceWords = map[string]string{
		"move_before": "make it before", "move_behind": "make it after", "batch": "batch them", "merge": "merge both", "move_in": "do it inside",
	}
)

func word(words map[string]string, s string) string {
	if w := words[s]; w != "" {
		return w
	}
	return s
}

// crossingLines returns the tables of processes and of pairs, below that of threads.
func (t *threadView) crossingLines(width int) []string {
	if t.last == nil {
		return nil
	}
	st := newStyles()
	var lines []string
	if len(t.processes) > 0 {
		lines = append(lines, "", " "+st.heading.Render(left("PROCESS", 9)+right("EENTER/s", 10)+right("EEXIT/s", 10)+right("AEX/s", 10)+"  SOURCE"))
		for _, p := range t.processes {
			lines = append(lines, cut(" "+left(strconv.Itoa(p.pid), 9)+right(number(p.Enters), 10)+right(number(p.Exits), 10)+right(number(p.AEXs), 10)+"  "+p.source, width))
		}
	}
	if len(t.last.Pairs) == 0 {
		return lines
	}
	const how, times, mean, advice = 10, 8, 8, 16
	name := max((width-1-how-times-mean-advice-2)/2, 8)
	lines = append(lines, "", " "+st.heading.Render(left("CALL", name)+left("HOW", how)+left("OTHER CALL", name)+right("TIMES", times)+right("MEAN", mean)+"  ADVICE"))
	for _, p := range t.last.Pairs {
		first, second := p.From, p.To
		switch p.Kind {
		case "ocall_in_ecall", "last_in_ecall": // the OCALL is the subject
			first, second = p.To, p.From
		case "ocall", "ecall":
			second = ""
		}
		lines = append(lines, cut(" "+left(first, name-1)+" "+left(word(pairWords, p.Kind), how)+left(second, name-1)+" "+
			right(count(p.N), times)+right(seconds(p.Mean), mean)+"  "+st.title.Render(word(adviceWords, p.Advice)), width))
	}
	return lines
}

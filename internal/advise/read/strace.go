// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"strconv"
	"strings"
)

// maxCalls bounds the rows of strace -c. Linux has fewer than 500 system calls.
const maxCalls = 4096

// maxTotal bounds the calls of all tables.
const maxTotal = 1 << 53

// Call is one row of strace -c.
type Call struct {
	Name    string
	Line    int
	Seconds float64 // system time in the call, or with -w the time that it took
	Calls   uint64
}

// Calls is the table that strace -c prints.
type Calls struct {
	Rows         []Call
	Line         int // of the heading
	Calls        uint64
	Seconds      float64
	PercentKnown bool // strace measured some time
}

// Share returns the share of the calls that have one of these names, and the row that has most of them.
func (c *Calls) Share(names ...string) (share float64, top Call) {
	if c.Calls == 0 {
		return 0, top
	}
	sum := uint64(0)
	for _, row := range c.Rows {
		for _, name := range names {
			if row.Name == name {
				sum += row.Calls
				if row.Calls > top.Calls {
					top = row
				}
			}
		}
	}
	return float64(sum) / float64(c.Calls), top
}

// IsCalls reports whether a line is the heading of the table that strace -c prints.
func IsCalls(line string) bool {
	return strings.Join(strings.Fields(line), " ") == "% time seconds usecs/call calls errors syscall"
}

// ParseCalls reads the table of strace -c, with its default columns: % time, seconds, usecs/call, calls, errors, syscall.
// Tables of several processes (-ff) add up.
func ParseCalls(data []byte) (Calls, error) {
	var c Calls
	at := make(map[string]int)
	table := false
	for n, line := range lines(string(data)) {
		fields := strings.Fields(line)
		switch {
		case IsCalls(line):
			if table = true; c.Line == 0 {
				c.Line = n
			}
			continue
		case len(fields) > 0 && fields[len(fields)-1] == "total":
			table = false
		case len(fields) == 0 || strings.HasPrefix(fields[0], "---"):
			continue
		}
		if !table {
			continue
		}
		row, err := callRow(fields)
		if err != nil {
			return Calls{}, fmt.Errorf("line %d: %w", n, err)
		}
		i, seen := at[row.Name]
		if !seen {
			if len(c.Rows) == maxCalls {
				return Calls{}, fmt.Errorf("line %d: there are more than %d system calls", n, maxCalls)
			}
			i = len(c.Rows)
			at[row.Name] = i
			c.Rows = append(c.Rows, Call{Name: row.Name, Line: n})
		}
		if c.Calls > maxTotal-row.Calls {
			return Calls{}, fmt.Errorf("line %d: there are more than %d calls", n, uint64(maxTotal))
		}
		c.Rows[i].Calls += row.Calls
		c.Rows[i].Seconds += row.Seconds
		c.Calls += row.Calls
		c.Seconds += row.Seconds
	}
	if len(c.Rows) == 0 {
		return Calls{}, fmt.Errorf("%w: strace -c begins with \"%% time     seconds  usecs/call     calls    errors syscall\"", errNothing)
	}
	c.PercentKnown = c.Seconds > 0
	return c, nil
}

// callRow reads one row. Without errors its column is blank.
func callRow(fields []string) (Call, error) {
	if len(fields) != 5 && len(fields) != 6 {
		return Call{}, fmt.Errorf("the row has %d columns, and those of strace -c have 5 or 6", len(fields))
	}
	name := fields[len(fields)-1]
	seconds, err1 := strconv.ParseFloat(strings.Replace(fields[1], ",", ".", 1), 64)
	calls, err2 := strconv.ParseUint(fields[3], 10, 48)
	if err1 != nil || err2 != nil || !(seconds >= 0 && seconds < 1e12) || !isCall(name) {
		return Call{}, fmt.Errorf("this is not a row of strace -c: seconds, calls and a name are in columns 2, 4 and the last")
	}
	return Call{Name: name, Seconds: seconds, Calls: calls}, nil
}

// isCall reports whether a text may be the name of a system call.
func isCall(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return len(s) <= 64
}

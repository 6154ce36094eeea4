// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// SCONE are the settings of SCONE's asynchronous system calls (https://sconedocs.github.io/SCONE_ENV/). 0 is not set.
type SCONE struct {
	Queues    uint64 // pairs of queues for system calls and their results
	Slots     uint64 // length of a queue: more than the threads of the application
	Outside   uint64 // threads that make system calls (sthreads), if the configuration file lists them
	SSpins    uint64 // how often a thread in the enclave (ethread) without work pauses before it sleeps
	Simulated bool   // there is no enclave
}

// Variables of the environment that SCONE reads.
const (
	sconeQueues = "SCONE_QUEUES"
	sconeSlots  = "SCONE_SLOTS"
	sconeSSpins = "SCONE_SSPINS"
	sconeTCS    = "SCONE_TCS"
	sconeHeap   = "SCONE_HEAP"
	sconeMode   = "SCONE_MODE"
)

// SCONEVariables returns the names of the variables that [SCONESettings] knows.
func SCONEVariables() map[string]bool {
	return map[string]bool{sconeQueues: true, sconeSlots: true, sconeSSpins: true, sconeTCS: true, sconeHeap: true, sconeMode: true}
}

// SCONESettings returns the configuration that variables of the environment give.
func SCONESettings(variables map[string]string) (Config, error) {
	c := Config{Runtime: "SCONE"}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if err := c.scone(name, variables[name]); err != nil {
			return Config{}, err
		}
	}
	return c, nil
}

// sconeLine matches a variable, as in a file of variables or as SCONE prints it with SCONE_VERSION=1, or the number of queues in
// its configuration file.
var sconeLine = lazy.Regexp(`(?m)^(?:export )?(SCONE_[A-Z_]+)=|^Q [0-9]`)

func isSCONE(text string) bool { return sconeLine().MatchString(text) }

// parseSCONE reads variables, or a configuration file: one command of one letter a line. Variables have precedence. The commands
// e and s have three numbers: the core or -1, the queue, and 0.
func parseSCONE(text string) (Config, error) {
	file, variables := Config{Runtime: "SCONE"}, make(map[string]string)
	for n, line := range lines(text) {
		if name, value, found := strings.Cut(strings.TrimPrefix(line, "export "), "="); found && SCONEVariables()[name] {
			variables[name] = strings.Trim(strings.TrimSpace(value), `"'`)
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		var err error
		switch fields[0] {
		case "Q":
			err = file.scone(sconeQueues, fields[1])
		case "H":
			err = file.scone(sconeHeap, fields[1])
		case "N":
			err = file.scone(sconeSSpins, fields[1])
		case "e": // a thread in the enclave
			file.Threads++
		case "s": // a thread outside
			file.SCONE.Outside++
		}
		if err != nil {
			return Config{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	c, err := SCONESettings(variables)
	if err != nil {
		return Config{}, err
	}
	if c.Memory == 0 {
		c.Memory, c.Key = file.Memory, file.Key
	}
	if c.Threads == 0 {
		c.Threads = file.Threads
	}
	if c.SCONE.Queues == 0 {
		c.SCONE.Queues = file.SCONE.Queues
	}
	if c.SCONE.SSpins == 0 {
		c.SCONE.SSpins = file.SCONE.SSpins
	}
	c.SCONE.Outside = file.SCONE.Outside
	return c, nil
}

// scone takes one variable.
func (c *Config) scone(name, value string) error {
	if name == sconeMode {
		c.SCONE.Simulated = strings.EqualFold(value, "sim")
		return nil
	}
	if name == sconeHeap {
		bytes, ok := sizeOf(value)
		if !ok {
			return fmt.Errorf("%s is not a size such as 64M", sconeHeap)
		}
		c.Memory, c.Key = bytes, sconeHeap
		return nil
	}
	n, err := strconv.ParseUint(value, 10, 40)
	if err != nil {
		return fmt.Errorf("%s is not a number", name)
	}
	switch name {
	case sconeQueues:
		c.SCONE.Queues = n
	case sconeSlots:
		c.SCONE.Slots = n
	case sconeSSpins:
		c.SCONE.SSpins = n
	case sconeTCS:
		c.Threads = n
	}
	return nil
}

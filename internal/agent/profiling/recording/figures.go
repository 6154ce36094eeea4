// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
)

// Figures describe how complete a profile is. All count samples.
type Figures struct {
	Samples    uint64            // that the profile has
	Unresolved uint64            // whose innermost function has no name
	Reasons    map[string]uint64 // of Unresolved, why
	Stackless  uint64            // without a stack, because it was lost; they are unresolved too
	Threadless uint64            // of Stackless, whose thread is not known either, because their workload has too many
	User       uint64            // with a stack in user mode
	Truncated  uint64            // of User, that have one frame, lead out of the code or end in a function in which no thread begins
	Unnamed    uint64            // of User, that end in a frame without a name, so that this is not known
	Dropped    uint64            // left out, because the recording was full
	Lost       uint64            // lost in the kernel, of all processes
	about      About
}

// figures computes the completeness of the profile.
func (r *Recording) figures(names []symbol.Name, about About) Figures {
	f := Figures{Reasons: map[string]uint64{}, Dropped: r.dropped, Lost: about.Tallies.LostSamples, about: about}
	for i := range r.samples {
		s := &r.samples[i]
		f.Samples += s.samples
		switch {
		case s.samples == 0: // it is free
		case len(s.standIns()) > 0:
		case len(s.stack) == 0:
			f.Unresolved += s.samples
			f.Reasons["the sample has no stack"] += s.samples
		case names[s.stack[0]].Function == "":
			f.Unresolved += s.samples
			f.Reasons[names[s.stack[0]].Reason] += s.samples
		}
		if s.stackLost {
			f.Stackless += s.samples
		}
		if s.shared {
			f.Threadless += s.samples
		}
		user := s.stack[s.kernel:]
		if len(user) == 0 {
			continue
		}
		f.User += s.samples
		switch end := r.end(user, names); {
		case s.left || end == truncated:
			f.Truncated += s.samples
		case end == unnamed:
			f.Unnamed += s.samples
		}
	}
	return f
}

// ending is how a stack ends.
type ending int

const (
	complete ending = iota
	truncated
	unnamed
)

// beginnings are functions in which threads begin: of the C libraries, and of Go, where a goroutine begins in goexit and the
// stack of the scheduler in mstart or mcall.
var beginnings = []string{
	"_start", "_dl_start", "_dl_start_user", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone", "clone3",
	"__clone", "__clone3", "__clone_internal", "_start_c", "libc_start_main_stage2", "start_c11",
	"runtime.goexit", "runtime.mstart", "runtime.mcall", "runtime.rt0_go", "_rt0_amd64", "_rt0_amd64_linux", "runtime.morestack",
}

// cLibraries begin the names of files whose functions call the first function of a thread. Their own first functions are not
// in the symbols that a stripped library keeps.
var cLibraries = []string{"libc.so", "libc-", "ld-linux", "ld-musl", "libc.musl", "libpthread"}

// end says how a stack ends. Without frame pointers a walk ends early, often after the first frame, or skips functions.
func (r *Recording) end(stack []uint32, names []symbol.Name) ending {
	last := stack[len(stack)-1]
	name := strings.TrimSuffix(names[last].System, ".abi0")
	switch {
	case slices.Contains(beginnings, name):
		return complete
	case len(stack) == 1:
		return truncated
	case r.inC(last) && !r.inC(stack[len(stack)-2]):
		return complete
	case name == "":
		return unnamed
	}
	return truncated
}

// inC reports whether a location is in the C library.
func (r *Recording) inC(location uint32) bool {
	m := r.locations[location].Mapping
	if m == nil {
		return false
	}
	file := path.Base(m.Path)
	return slices.ContainsFunc(cLibraries, func(p string) bool { return strings.HasPrefix(file, p) })
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// notes returns sentences for the reader of the profile. The second one is always the unresolved share.
func (f Figures) notes() []string {
	stacks := "stacks by frame pointers"
	if f.about.Unwound {
		stacks = "stacks by .eh_frame and frame pointers"
	}
	how := fmt.Sprintf("%d samples by %s at %d Hz in %.1f s, %s", f.Samples, f.about.Event, f.about.Frequency, f.about.Lasted.Seconds(), stacks)
	if !f.about.Event.Counter() {
		how = fmt.Sprintf("%d samples of %s in %.1f s, each stands for %d on average, %s", f.Samples, f.about.Event, f.about.Lasted.Seconds(), max(f.about.Weight, 1), stacks)
	}
	unresolved := percent(f.Unresolved, f.Samples) + " of the samples are unresolved: the innermost function has no name"
	reasons := slices.SortedFunc(maps.Keys(f.Reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Reasons[b], f.Reasons[a]), cmp.Compare(a, b))
	})
	for i, why := range reasons[:min(len(reasons), 3)] {
		unresolved += map[bool]string{true: " (", false: "; "}[i == 0] + percent(f.Reasons[why], f.Samples) + ": " + why
	}
	if len(reasons) > 0 {
		unresolved += ")"
	}
	notes := []string{how, unresolved}
	if f.User > 0 {
		note := percent(f.Truncated, f.User) + " of the user stacks look truncated: they have one frame, lead outside of code, or end in a function in which no thread begins"
		if f.Unnamed > 0 {
			note += "; " + percent(f.Unnamed, f.User) + " end in a frame without a name, so that this is not known"
		}
		notes = append(notes, note)
	}
	if f.Lost+f.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("lost: %d samples of all processes in the kernel and %d of the recorded ones here, because there was no room", f.Lost, f.Dropped))
	}
	if f.Stackless > 0 {
		notes = append(notes, fmt.Sprintf("%d samples lost a stack, because there was no room for it", f.Stackless))
	}
	if f.Threadless > 0 {
		notes = append(notes, fmt.Sprintf("%d of them have no process and thread, because their workload has too many", f.Threadless))
	}
	switch f.about.Event {
	case profiling.SystemCalls:
		notes = append(notes, "system calls that have not returned are missing, such as one that waits at the end of the recording")
	case profiling.OffCPU:
		notes = append(notes, "waits that have not ended, and those that began before the recording, are missing; the reasons come from functions of the kernel on the stack")
	case profiling.AEX:
		notes = append(notes, "an interrupt that follows another one before the thread has resumed counts too, and exceptions in an enclave have no tracepoint")
	case profiling.Cycles:
		notes = append(notes, "cycles do not count inside enclaves, except with the debug attribute: --event cpu-clock does")
	}
	return append(notes, f.about.Unseen...)
}

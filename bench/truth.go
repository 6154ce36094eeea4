// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/clock"
)

// Truth compares a mode's count with the true number. A mode that counts less has less to do, so its cost cannot be
// compared.
type Truth struct {
	Mode    string   `json:"mode"`
	Beside  string   `json:"beside"` // what else runs: "nothing", or "a busy loop" that makes other calls
	Calls   float64  `json:"calls"`
	Counted *float64 `json:"counted,omitempty"` // absent when the mode counts nothing or does not answer
	Whole   bool     `json:"whole_machine"`     // it counts all processes together
	Says    string   `json:"says,omitempty"`    // its own statement of the level at which it watches
	Problem string   `json:"problem,omitempty"`
}

const (
	besideNothing = "nothing"
	besideBusy    = "a busy loop"
)

// The programs that make the calls. For teescope, a program's name is its workload.
const (
	callsProgram = "benchcalls"
	busyProgram  = "benchbusy"
)

// truthBurst is the number of calls at a time, with pauses of 10 ms. A million calls take ten seconds.
const truthBurst = 1000

// truthWithin bounds the time of a tracer that stops the process at each call. It counts from the first call.
const truthWithin = 3 * time.Minute

// truths checks every mode that counts, alone and next to a process that makes calls as fast as it can.
func truths(ctx context.Context, progress io.Writer, o options, dir string) ([]Truth, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{callsProgram, busyProgram} {
		if err := compileLoop(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	var all []Truth
	for _, name := range o.modes {
		for _, beside := range []string{besideNothing, besideBusy} {
			t, counts, err := truthOf(ctx, o, modeNamed(name), beside, dir)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				t.Problem = err.Error()
			}
			if !counts && err == nil {
				break
			}
			fmt.Fprintf(progress, "counts: %s beside %s: %s\n", name, beside, t.counted())
			all = append(all, t)
		}
	}
	return all, nil
}

// truthOf makes a known number of calls under a mode. A mode that counts nothing is not an error.
func truthOf(ctx context.Context, o options, m mode, beside, programs string) (t Truth, counts bool, err error) {
	t = Truth{Mode: m.name, Beside: beside, Calls: float64(o.calls), Whole: m.whole}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp(programs, m.name)
	if err != nil {
		return t, false, err
	}
	defer os.RemoveAll(dir)
	words := filepath.Join(dir, "words")
	c, err := startLoop(ctx, filepath.Join(programs, callsProgram), words, false, unix.SYS_GETPPID, strconv.Itoa(o.calls), strconv.Itoa(truthBurst))
	if err != nil {
		return t, false, err
	}
	defer c.stop()
	if beside == besideBusy {
		busy, err := startLoop(ctx, filepath.Join(programs, busyProgram), filepath.Join(dir, "busy"), true, unix.SYS_GETUID)
		if err != nil {
			return t, false, err
		}
		defer busy.stop()
	}
	w, err := m.start(ctx, o, target{pids: c.pids(), dir: dir})
	if err != nil {
		return t, false, err
	}
	defer w.stop()
	if w.counted == nil {
		return t, false, nil
	}
	if err := clock.Sleep(ctx, o.settled(m)); err != nil {
		return t, true, err
	}
	if err := finish(ctx, words, o.calls); err != nil {
		return t, true, err
	}
	if err := clock.Sleep(ctx, o.reportDelay(m)); err != nil {
		return t, true, err
	}
	n, says, err := w.counted(ctx, subject{name: callsProgram, pid: c.cmd.Process.Pid})
	if err == nil {
		t.Counted, t.Says = &n, says
	}
	return t, true, err
}

// reportDelay returns how long a mode may take to report a count. Sampled counts are reported a second late.
func (o options) reportDelay(m mode) time.Duration {
	if o.quick {
		return o.settle
	}
	return max(o.settled(m), 2*time.Second)
}

func startLoop(ctx context.Context, program, words string, begin bool, nr int, more ...string) (*child, error) {
	if err := writeWords(words, begin); err != nil {
		return nil, err
	}
	return startOn(ctx, anyCore, program, append([]string{words, strconv.Itoa(nr)}, more...)...)
}

// finish starts the loop and waits until it has made all its calls.
func finish(ctx context.Context, words string, calls int) error {
	f, err := os.OpenFile(words, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{1}, 8); err != nil {
		return err
	}
	for begin := time.Now(); ; {
		done, err := wordsDone(words)
		if err != nil || done >= float64(calls) {
			return err
		}
		if time.Since(begin) > truthWithin {
			return fmt.Errorf("after %s %.0f of %d calls were made", truthWithin, done, calls)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/metric"
)

// TestRead makes the real ioctls. The kernel passes them to a stand-in for the driver.
func TestRead(t *testing.T) {
	for name, tt := range map[string]struct {
		driver standin
		want   State
		err    error
	}{
		"535, ready": {
			standin{capabilities: []byte{1, 2, 2, 2, 0}, ready: 1},
			State{Mode: On, Ready: true, Environment: "production", CPU: "sev", GPUs: "hcc"}, nil,
		},
		"550, not ready": {
			standin{capabilities: []byte{2, 2, 2, 2, 0, 0}, policy: 60},
			State{Mode: On, Environment: "production", CPU: "tdx", GPUs: "hcc", KeyBits: 60}, nil,
		},
		"protected PCIe says that the feature is off": {
			standin{capabilities: []byte{3, 2, 2, 0, 0, 1}, ready: 1, policy: 55},
			State{Mode: ProtectedPCIe, Ready: true, Environment: "production", CPU: "sev-snp", GPUs: "hcc", KeyBits: 55}, nil,
		},
		"NVLE, for developers, in a longer record": {
			standin{capabilities: []byte{4, 2, 1, 2, 1, 2, 9}, ready: 1},
			State{Mode: NVLE, Ready: true, Environment: "simulation", DevTools: true, CPU: "snp-vtom", GPUs: "hcc"}, nil,
		},
		"numbers of a newer driver": {
			standin{capabilities: []byte{9, 9, 9, 2, 0, 9}},
			State{Mode: Unknown, Environment: Unknown, CPU: Unknown, GPUs: Unknown}, nil,
		},
		"off":                 {standin{capabilities: make([]byte, 6)}, State{Mode: Off, Environment: "unavailable", CPU: "none", GPUs: "none"}, nil},
		"an old driver":       {standin{old: true}, State{}, ErrUnsupported},
		"a record of no size": {standin{capabilities: make([]byte, 40)}, State{}, ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			d := tt.driver
			got, err := Read(machineWith(t, &d))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("the state is %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
			if len(d.objects) != 0 || d.asked == 0 {
				t.Errorf("the driver was asked %d times, and keeps %v", d.asked, d.objects)
			}
		})
	}
}

// TestOpenedForReading: the sandbox of the agent refuses to open a file for writing.
func TestOpenedForReading(t *testing.T) {
	roots := machineWith(t, &standin{capabilities: make([]byte, 6)})
	s, err := open(filepath.Join(roots.Dev, "nvidiactl"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	flags, err := unix.FcntlInt(s.file.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY {
		t.Errorf("the device is open with the flags %#x, %v", flags, err)
	}
}

func TestWithoutADriver(t *testing.T) {
	if _, err := Read(tee.Roots{Dev: t.TempDir()}); !errors.Is(err, fs.ErrNotExist) || !absent(err) {
		t.Errorf("the error is %v, want that there is no file", err)
	}
	for _, err := range []error{unix.ENXIO, unix.ENODEV} { // what opening a device without its driver says
		if !absent(&fs.PathError{Op: "open", Path: "/dev/nvidiactl", Err: err}) {
			t.Errorf("%v is a failure", err)
		}
	}
}

// backend returns a backend that is asked by hand, and its clock.
func backend(read func() (State, error)) (*Backend, *time.Time) {
	b := New(tee.Roots{}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	now := time.Unix(1e9, 0)
	b.read, b.now = read, func() time.Time { return now }
	return b, &now
}

func collected(t *testing.T, b *Backend) (map[string]float64, error) {
	t.Helper()
	got := map[string]float64{}
	err := b.Collect(t.Context(), func(m prometheus.Metric) { got[m.(*metric.Sample).Of.Name] = m.(*metric.Sample).Value })
	return got, err
}

func TestCollect(t *testing.T) {
	const info, ready, bits = "teescope_gpu_confidential_info", "teescope_gpu_ready", "teescope_gpu_key_rotation_bits"
	for name, tt := range map[string]struct {
		state State
		want  map[string]float64 // by family
	}{
		"ready":     {State{Mode: On, Ready: true, KeyBits: 60}, map[string]float64{info: 1, ready: 1, bits: 60}},
		"not ready": {State{Mode: ProtectedPCIe}, map[string]float64{info: 1, ready: 0}},
		"off":       {State{Mode: Off, Ready: true, KeyBits: 60}, map[string]float64{info: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b, now := backend(nil)
			b.answer(tt.state, nil)
			got, err := collected(t, b)
			if err != nil || !maps.Equal(got, tt.want) {
				t.Errorf("collected %v, %v, want %v", got, err, tt.want)
			}
			*now = now.Add(fresh + time.Second)
			if got, err := collected(t, b); len(got) != 0 || err != nil {
				t.Errorf("an old answer is shown: %v, %v", got, err)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	b, _ := backend(nil)
	b.answer(State{Mode: On}, nil)
	b.answer(State{}, unix.EIO)
	if got, err := collected(t, b); len(got) != 0 || !errors.Is(err, unix.EIO) {
		t.Errorf("collected %v, %v, want the error", got, err)
	}
	for _, none := range []error{unix.EPERM, errors.Join(ErrUnsupported, statusError(1)), fs.ErrNotExist} {
		b.answer(State{}, none)
		if got, err := collected(t, b); len(got) != 0 || err != nil {
			t.Errorf("%v: collected %v, %v, want nothing", none, got, err)
		}
	}
	b.answer(State{Mode: On}, nil)
	if got, err := collected(t, b); len(got) != 2 || err != nil {
		t.Errorf("collected %v, %v, want that it is known again", got, err)
	}
}

// TestABusyDriver delays an answer. No caller waits meanwhile, and the driver gets no second request.
func TestABusyDriver(t *testing.T) {
	answer, asked := make(chan State), make(chan bool, 8)
	b, _ := backend(func() (State, error) {
		asked <- true
		return <-answer, nil
	})
	b.ask()
	<-asked
	b.ask()
	if got, err := collected(t, b); len(got) != 0 || err != nil {
		t.Errorf("collected %v, %v before an answer", got, err)
	}
	if len(asked) != 0 {
		t.Error("the driver was asked again")
	}
	answer <- State{Mode: On, Ready: true}
	for {
		if got, _ := collected(t, b); len(got) == 2 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	b.ask()
	<-asked
	answer <- State{}
}

// A driver that does not answer blocks a thread, and the thread cannot drop its privileges.
func TestTheDriverIsAskedWithoutPrivileges(t *testing.T) {
	begin, asked := make(chan struct{}), make(chan struct{})
	b := New(tee.Roots{}, begin, slog.New(slog.DiscardHandler))
	b.read = func() (State, error) { close(asked); return State{Mode: Off}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	select {
	case <-asked:
		t.Error("the driver is asked before the privileges are dropped")
	case <-time.After(20 * time.Millisecond):
		close(begin)
		<-asked
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

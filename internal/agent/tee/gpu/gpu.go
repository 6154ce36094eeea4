// SPDX-License-Identifier: Apache-2.0

// Package gpu is the backend for confidential GPUs of NVIDIA: whether they protect their data, and whether they accept work.
// It queries the driver with the requests of its open kernel modules, without NVIDIA's library. It does not open a GPU,
// because that could start it, and does not change settings.
package gpu

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/service"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

const (
	// every is the interval of queries. A query holds the locks of all GPUs for a moment.
	every = 15 * time.Second
	// fresh is the maximum age of an exported answer. If the driver is busy for longer, there are no samples.
	fresh = 4 * every
)

// Backend implements tee.Backend. Run asks the driver.
type Backend struct {
	begin <-chan struct{} // the driver is asked after it is closed
	read  func() (State, error)
	now   func() time.Time
	log   *slog.Logger

	info, ready, keyBits *metric.Desc

	mu     sync.Mutex // protects all fields below
	asking bool       // a question is not answered yet
	state  State
	at     time.Time // of state; zero if there is none
	failed error     // of the last question
}

// New returns a backend for the machine below the roots. begin is closed when the agent has dropped its privileges. Dropping them
// waits for all threads, including one that the driver does not answer. If begin is nil, they were dropped before.
func New(r tee.Roots, begin <-chan struct{}, log *slog.Logger) *Backend {
	const (
		decoded = "decoded from the headers of NVIDIA's open kernel modules and run on a stand-in for the driver, not on a GPU"
		answer  = " The answer is for all GPUs together. It is absent without NVIDIA's driver, and if the driver does not support confidential computing."
		origin  = "ioctl of /dev/nvidiactl: "
	)
	gauge := func(name, unit, help, command string) *metric.Desc {
		return metric.New(metric.Desc{
			Name: name, Kind: metric.Gauge, Unit: unit, Help: help + answer, Source: metric.Kernel, Origin: origin + command, Proven: decoded,
		})
	}
	return &Backend{
		begin: begin, read: func() (State, error) { return Read(r) }, now: time.Now, log: log,
		info: metric.New(metric.Desc{
			Name: "teescope_gpu_confidential_info", Kind: metric.Info, Source: metric.Kernel,
			Labels: []string{"mode", "environment", "devtools", "cpu", "gpus"},
			Help: "Always 1. mode is off, on, protected_pcie or nvle (both for several GPUs), or unknown. environment is production, simulation (not protected) or unavailable. devtools is on if profilers may inspect the GPUs. " +
				"cpu is the TEE of this machine as the driver detects it: none, sev, tdx, sev-snp, snp-vtom. gpus is the capability of the GPUs: none, apm, hcc. While no program has a GPU open, the driver may report off and none." + answer,
			Origin: origin + "NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_CAPABILITIES", Proven: decoded,
		}),
		ready: gauge("teescope_gpu_ready", "",
			"1 if confidential GPUs accept work, and 0 if they have not been set ready: programs then find no GPU. Absent if mode is off in teescope_gpu_confidential_info.",
			"NV_CONF_COMPUTE_CTRL_CMD_SYSTEM_GET_GPUS_STATE"),
		keyBits: gauge("teescope_gpu_key_rotation_bits", "bits",
			"Policy for the keys with which copies are encrypted: they are replaced before the advantage of an attacker exceeds 2 to the power of minus this. With a larger value they are replaced more often, and copies wait then. Drivers before 550 do not report it. Absent if mode is off.",
			"NV_CONF_COMPUTE_CTRL_GET_SECURITY_POLICY"),
	}
}

// Name implements tee.Backend.
func (*Backend) Name() teelabel.Kind { return "gpu" }

// Describe implements tee.Backend.
func (b *Backend) Describe() []*metric.Desc { return []*metric.Desc{b.info, b.ready, b.keyBits} }

// Run asks the driver until ctx ends.
func (b *Backend) Run(ctx context.Context) error {
	if b.begin != nil {
		select {
		case <-b.begin:
		case <-ctx.Done():
			return nil
		}
	}
	service.Every(ctx, every, b.ask)
	return nil
}

// ask starts a query, unless one is still running. No goroutine waits for it, because a driver may never answer.
func (b *Backend) ask() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asking {
		return
	}
	b.asking = true
	go func() {
		state, err := b.read()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answer(state, err)
	}()
}

// answer stores the driver's answer. An agent without access to the device logs that once, because it is a matter of
// configuration and not a failure.
func (b *Backend) answer(state State, err error) {
	b.asking = false
	if err == nil {
		b.state, b.at, b.failed = state, b.now(), nil
		return
	}
	b.at = time.Time{}
	if absent(err) {
		b.failed = nil
		return
	}
	if b.failed == nil {
		b.log.Warn("the state of confidential GPUs is not known", "err", err)
	}
	b.failed = err
}

// Collect implements tee.Backend. It does not wait for the driver.
func (b *Backend) Collect(_ context.Context, emit func(prometheus.Metric)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() || b.now().Sub(b.at) > fresh {
		if errors.Is(b.failed, fs.ErrPermission) {
			return nil
		}
		return b.failed
	}
	s, tools := b.state, "off"
	if s.DevTools {
		tools = "on"
	}
	emit(b.info.Value(1, s.Mode, s.Environment, tools, s.CPU, s.GPUs))
	if s.Mode == Off {
		return nil
	}
	ready := 0.0
	if s.Ready {
		ready = 1
	}
	emit(b.ready.Value(ready))
	if s.KeyBits != 0 {
		emit(b.keyBits.Value(float64(s.KeyBits)))
	}
	return nil
}

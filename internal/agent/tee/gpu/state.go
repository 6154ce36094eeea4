// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// Modes of confidential computing, as the label mode names them.
const (
	Off           = "off"
	On            = "on"
	ProtectedPCIe = "protected_pcie" // several GPUs; the driver's own feature then says that it is off
	NVLE          = "nvle"           // several GPUs with encrypted NVLink
	Unknown       = "unknown"        // a value of a newer driver
)

// State is the state of confidential computing that NVIDIA's driver reports, for all GPUs together.
type State struct {
	Mode        string
	Ready       bool   // the GPUs accept work; not valid if Mode is Off
	Environment string // unavailable, simulation or production
	DevTools    bool   // profilers may inspect the GPUs, which weakens the protection
	CPU, GPUs   string // capabilities of the machine and of the GPUs, as the driver reports them
	// KeyBits is the exponent of the policy for the keys of copies: they are replaced before the advantage of an attacker exceeds
	// 2^-KeyBits. It is 0 if the driver does not report it.
	KeyBits uint64
}

// Names of numbers in the driver's headers.
var (
	cpuNames         = []string{"none", "sev", "tdx", "sev-snp", "snp-vtom"}
	gpuNames         = []string{"none", "apm", "hcc"}
	environmentNames = []string{"unavailable", "simulation", "production"}
)

func nameOf(names []string, n byte) string {
	if int(n) < len(names) {
		return names[n]
	}
	return Unknown
}

// Places in the answer to commandCapabilities. The last one exists from 550 on.
const (
	atCPU = iota
	atGPUs
	atEnvironment
	atFeature
	atDevTools
	atMultiGPU
)

// sizes of the answer to commandCapabilities that drivers have or may get. A driver refuses another size than its own.
var sizes = []int{atMultiGPU + 1, atDevTools + 1, atMultiGPU + 2, atMultiGPU + 3}

// ErrUnsupported is the error of Read on a machine whose driver does not support confidential computing.
var ErrUnsupported = errors.New("NVIDIA's driver does not support confidential computing")

// Read queries the driver. Without its control device the error is fs.ErrNotExist. It waits while the driver is busy.
func Read(r tee.Roots) (State, error) {
	s, err := open(hostfs.At(r.Dev).Path("nvidiactl"))
	if err != nil {
		return State{}, unsupported(err)
	}
	defer s.close()
	var capabilities []byte
	for _, size := range sizes {
		capabilities = make([]byte, size)
		if err = s.ask(commandCapabilities, capabilities); !errors.As(err, new(statusError)) {
			break
		}
	}
	if err != nil {
		return State{}, unsupported(err)
	}
	state := decode(capabilities)
	ready := make([]byte, 1)
	if err := s.ask(commandReady, ready); err != nil {
		return State{}, unsupported(err)
	}
	state.Ready = ready[0] != 0
	policy := make([]byte, 8)
	if s.ask(commandPolicy, policy) == nil { // from 550 on
		state.KeyBits = binary.NativeEndian.Uint64(policy)
	}
	return state, nil
}

// unsupported returns ErrUnsupported instead of a status.
func unsupported(err error) error {
	if errors.As(err, new(statusError)) {
		return errors.Join(ErrUnsupported, err)
	}
	return err
}

// absent reports whether an error means that this machine has no such state, which is not a failure. The device stays when the
// driver is unloaded.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, ErrUnsupported)
}

// decode reads an answer to commandCapabilities.
func decode(c []byte) State {
	s := State{
		CPU: nameOf(cpuNames, c[atCPU]), GPUs: nameOf(gpuNames, c[atGPUs]), Environment: nameOf(environmentNames, c[atEnvironment]),
		DevTools: c[atDevTools] == 1, Mode: Off,
	}
	if c[atFeature] != 0 {
		s.Mode = On
	}
	if len(c) > atMultiGPU {
		switch c[atMultiGPU] {
		case 0:
		case 1:
			s.Mode = ProtectedPCIe
		case 2:
			s.Mode = NVLE
		default:
			s.Mode = Unknown
		}
	}
	return s
}

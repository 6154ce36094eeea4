// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/tee/gpu"
)

func TestConfidentialGPU(t *testing.T) {
	for name, tt := range map[string]struct {
		state          gpu.State
		status         Status
		detail, advice string
	}{
		"off":           {gpu.State{Mode: gpu.Off}, OK, "is off", ""},
		"ready":         {gpu.State{Mode: gpu.On, Ready: true, Environment: "production"}, OK, "is on, and the GPUs accept work", ""},
		"protected":     {gpu.State{Mode: gpu.ProtectedPCIe, Ready: true}, OK, "is protected_pcie", ""},
		"not ready":     {gpu.State{Mode: gpu.On, DevTools: true}, Limited, "accept no work", "-srs 1"},
		"for profilers": {gpu.State{Mode: gpu.On, Ready: true, DevTools: true}, Limited, "for developers", "does not protect"},
		"simulation":    {gpu.State{Mode: gpu.On, Ready: true, Environment: "simulation"}, Limited, "for developers", "does not protect"},
	} {
		status, detail, advice := confidential(tt.state, "one GPU")
		if status != tt.status || !strings.HasPrefix(detail, "one GPU; ") || !strings.Contains(detail, tt.detail) || !strings.Contains(advice, tt.advice) || (advice == "") != (tt.advice == "") {
			t.Errorf("%s: %s, %q, %q", name, status, detail, advice)
		}
	}
}

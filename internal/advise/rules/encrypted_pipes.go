// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// pipeShare is the least share of the time in TLS between processes. Documented (Multi-process workloads): encryption costs 1 to 10 %.
const pipeShare = 0.10

func encryptedPipes() advise.Rule {
	return advise.Rule{
		ID: "encrypted-pipes", Title: "processes exchange much data through pipes and sockets", Section: sectionProcesses, Analyze: judged.EncryptionTax,
		Needs:  [][]advise.Input{{advise.Findings}, {advise.Profile}, {advise.Traffic}},
		Signal: "a finding of `encryption-tax` without a mount of the type \"encrypted\", share of TLS of Gramine's pipes (`mbedtls_ssl_*`) in a profile, or share of the bytes of a trace that go through Gramine's sockets (`@/gramine/`)", Threshold: "the threshold of `encryption-tax`; 10 %; 20 %",
		Source: guide + ": encryption between processes costs 1 to 10 %; the share of bytes is proposed", Advice: "fewer and larger messages",
		NotWhen: []string{"the application itself uses mbed TLS, as for its connections to clients"},
		Judge: func(f *advise.Facts) *advise.Advice {
			var a *advise.Advice
			if found := f.Finding(judged.EncryptionTax); found != nil && (f.Manifest == nil || len(f.Manifest.EncryptedMounts()) == 0) {
				a = fromFinding(f, found)
			} else if part, figures, found := share(f, advise.Profile, "share of TLS between processes", pipeShare, func(name string) bool { return strings.HasPrefix(name, "mbedtls_ssl_") }); found {
				a = configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the time is in TLS. Gramine encrypts pipes, FIFOs and UNIX sockets between its processes, and each new thread makes such a pipe.", 100*part))
				a.Seen = figures
			} else if a = movedMuch(f, "go through Gramine's pipes and Unix sockets", func(t *read.Traffic) read.Moved { return t.Gramine }); a == nil {
				return nil
			}
			a.Do = []string{"send fewer and larger messages between processes", "use threads of one process instead of several processes", "start threads once and give them work (thread pool)"}
			return a
		},
	}
}

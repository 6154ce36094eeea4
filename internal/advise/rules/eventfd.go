// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// secureEventfd is the version of Gramine that introduced an eventfd in the enclave. Documented: manifest syntax of 1.7.
const secureEventfd = "1.7"

func eventfd() advise.Rule {
	const key = "sys.insecure__allow_eventfd"
	return advise.Rule{
		ID: "eventfd", Title: "event notifications go through the host", Section: sectionSyntax + "Allowing eventfd",
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "`" + key + "`", Threshold: "true", Source: "gramineproject/gramine issue 1858: without it an application was 15 to 20 % slower; the secure one is the default from 1.7 on",
		Advice: "the secure eventfd in production, and a comparison of equal settings after an upgrade",
		Judge: func(f *advise.Facts) *advise.Advice {
			if !isTrue(f.Manifest, key) || f.Gramine.Before(secureEventfd) {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "The host can forge events of this eventfd. Without the setting, Gramine emulates eventfd in the enclave, and applications that use it often are 15 to 20 % slower. A comparison of runs with and without it, as after an upgrade, compares that too.")
			a.Seen = []advise.Seen{setting(f.Manifest, f.Manifest.Get(key), "false")}
			a.Do = []string{"use the secure eventfd in production"}
			a.Changes, a.Choice, a.Risk = set(key, "false"), true, "applications that use eventfd often, such as event loops that wake each other, get slower. Gramine before 1.7 has no secure eventfd: there eventfd then fails"
			return a
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import "time"

func perfCountersCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", counters: "     3,568,568,948      cycles\n"},
			{manifest: "sgx.debug = false", counters: "     3,568,568,948      cycles:u\n     1,072,072,581      instructions\n"},
		},
		near: []given{
			{manifest: "sgx.debug = true", counters: "     3,568,568,948      cycles\n"},
			{manifest: "sgx.debug = {{ d }}", template: true, counters: "     3,568,568,948      cycles\n"},
		},
		negative: []given{
			{manifest: "a=1", stats: started, elapsed: time.Second},
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import "time"

// totalStats are SGX stats of a process.
const totalStats = "----- Total SGX stats for process 7 -----\n# of EENTERs: 9\n# of EEXITs: 9\n# of AEXs: 9\n# of sync signals: 0\n# of async signals: 0\n"

func perfCountersCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", counters: "     3,568,568,948      cycles\n"},
			{manifest: "sgx.debug = false", counters: "     3,568,568,948      cycles:u\n     1,072,072,581      instructions\n"},
			{manifest: "sgx.debug = true", counters: "     3,568,568,948      cycles\n"}, // without TCS.FLAGS.DBGOPTIN
		},
		near: []given{
			{manifest: "sgx.debug = true\nsgx.enable_stats = true", counters: "     3,568,568,948      cycles\n"},
			{manifest: "sgx.debug = true\nsgx.vtune_profile = true", counters: "     3,568,568,948      cycles\n"},
			{manifest: "sgx.debug = true\nsgx.enable_stats = {{ s }}", template: true, counters: "     3,568,568,948      cycles\n"},
			{manifest: "sgx.debug = true", counters: "     3,568,568,948      cycles\n\n" + totalStats}, // the run had the option
			{manifest: "sgx.debug = {{ d }}", template: true, counters: "     3,568,568,948      cycles\n"},
		},
		negative: []given{
			{manifest: "a=1", stats: started, elapsed: time.Second},
		},
	}
}

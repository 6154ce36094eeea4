// SPDX-License-Identifier: Apache-2.0

package rules

// Names of rules that others name: a finding that explains another one supersedes it.
const (
	needlessSyscalls   = "needless-syscalls"
	ocallBound         = "ocall-bound"
	smallIO            = "small-io"
	epcThrashing       = "epc-thrashing"
	loadBackStalls     = "load-back-stalls"
	pageFaultStorm     = "page-fault-storm"
	contextSwitchStorm = "context-switch-storm"
	threadChurn        = "thread-churn"
	processChurn       = "process-churn"
	pollingLoop        = "polling-loop"
)

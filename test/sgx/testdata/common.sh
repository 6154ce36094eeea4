# SPDX-License-Identifier: Apache-2.0
# Part of the scripts that run in the virtual SGX machine: waiting for conditions. The limits are those of a machine that hangs.

# until_so CMD... waits for up to five minutes until a command succeeds.
until_so() {
	tries=0
	while ! "$@" && [ $tries -lt 3000 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

# complete FILE writes the agent's metrics. It fails if a collector failed: on a busy host one may have no time.
complete() { wget -qO "$1" http://127.0.0.1:9750/metrics && ! grep -q '^teescope_collector_success{.*} 0$' "$1"; }

# patiently CMD... repeats a command that scrapes until it succeeds. The last result counts.
patiently() {
	scrapes=0
	while ! "$@" && [ $scrapes -lt 100 ]; do
		sleep 0.5
		scrapes=$((scrapes + 1))
	done
}

# stopped PID: every thread of a process is stopped.
stopped() { ! grep -h '^State:' /proc/"$1"/task/*/status | grep -qv '^State:.[Tt]'; }

# SPDX-License-Identifier: Apache-2.0
# Part of the scripts that run in the virtual SGX machine: waiting for conditions that stay true.

# until_so CMD... waits until a command succeeds. The limit is that of a machine that hangs. Then the script ends, with what it has waited for.
until_so() {
	until_limit=$(($(uptime_seconds) + 600))
	until "$@"; do
		if [ "$(uptime_seconds)" -ge $until_limit ]; then
			echo "it never came true: $*" >&2
			tail -n 20 ./*.log >&2
			exit 1
		fi
		sleep 0.1
	done
}

uptime_seconds() { cut -d. -f1 /proc/uptime; }

# complete FILE writes the agent's metrics. It fails if a collector failed: on a busy host one may have no time.
complete() { wget -qO "$1" http://127.0.0.1:9750/metrics && ! grep -q '^teescope_collector_success{.*} 0$' "$1"; }

# stopped PID: every thread of a process is stopped.
stopped() { ! grep -h '^State:' /proc/"$1"/task/*/status | grep -qv '^State:.[Tt]'; }

# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: in each of ROUNDS rounds, a key-value server in an enclave is under load for
# SECONDS_EACH, with and without teescope, in changing order. Prints a line for each window: round, mode, and the report
# of the load generator.
set -u

kv -mib 2 -threads 8 >/dev/null &
server=$!

ready() {
	tries=0
	while ! wget -qO- http://127.0.0.1:9750/metrics 2>/dev/null | grep -q "$1" && [ $tries -lt 300 ]; do
		kvload -connections 1 -count 1 >/dev/null # whose ECALL shows the table of OCALLs
		sleep 0.2
		tries=$((tries + 1))
	done
}

window() { echo "$1 $2 $(kvload -connections 2 -count 0 -seconds "$SECONDS_EACH")"; }

watched() {
	./teescope agent --listen 127.0.0.1:9750 >agent.log 2>&1 &
	agent=$!
	ready 'ocall="kv_ocall_send"'
	window "$1" on
	if [ "$1" = "$ROUNDS" ]; then
		echo 1 >/proc/sys/kernel/bpf_stats_enabled # for what each program costs, when all windows are over
		paging -mib 6 -working 6 -count 1 >/dev/null
		kvload -connections 2 -count 300 >/dev/null
		wget -qO metrics.cost http://127.0.0.1:9750/metrics
	fi
	kill $agent
	wait $agent
}

kvload -connections 2 -count 500 >/dev/null # the pages of the enclave are there
round=1
while [ "$round" -le "$ROUNDS" ]; do
	if [ $((round % 2)) = 0 ]; then
		window $round off
		watched $round
	else
		watched $round
		window $round off
	fi
	round=$((round + 1))
done
kill $server

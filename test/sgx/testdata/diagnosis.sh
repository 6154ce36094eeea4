# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is always idle, one that pages, and then one that mostly makes OCALLs.
# They are analysed after one window of $WINDOW seconds, and after a second one if the first has no finding.
set -u

# A program with another name is another workload.
cp /testbed/kv /testbed/quiet
cp /testbed/pingpong /testbed/chatty
quiet -port 7000 -mib 1 >quiet.out &
quiet=$!

# up starts it with these flags.
up() {
	./teescope up --listen 127.0.0.1:9750 --data-dir /tmp/data --interval 1s --overhead.budget 100% "$@" >>up.log 2>&1 &
	up=$!
	tries=0
	while ! wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null && [ $tries -lt 600 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

# look writes the findings of up to two windows.
look() {
	for _ in 1 2; do
		sleep "$WINDOW"
		./teescope analyze --server http://127.0.0.1:9750 --window "${WINDOW}s" --format json --all --timeout 60s \
			--fail-on low >"$1" 2>>analyze.log
		[ $? -eq 3 ] && break # something is found
	done
}

# number prints a number of a program's report.
number() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/" cost.out; }

up
paging -mib "$MIB" -working "$MIB" -count 0 >paging.out &
paging=$!
look paging.json
kill -9 $paging
kill $up
wait $up

# The cost of a crossing is measured just before, because emulation changes it, and a busy host increases it.
# If the host becomes busy in between, the measurement is wrong. So there are several attempts.
for _ in 1 2 3; do
	pingpong -count 2000 -ocalls 20 >cost.out
	cost=$(awk "BEGIN { printf \"%.2fus\", 1e6 * $(number ecall_seconds) / ($(number ecalls) + $(number ocalls)) }")
	echo "a crossing costs $cost" >>analyze.log
	up --transitions.cost "$cost"
	chatty -count 0 -ocalls 20 >chatty.out &
	chatty=$!
	look chatty.json
	kill -9 $chatty
	kill $up
	wait $up
	grep -q ocall-bound chatty.json && break
done
kill -9 $quiet

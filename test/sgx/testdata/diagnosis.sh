# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is quiet all the while, one that pages, and then one that makes OCALLs
# and little else. They are looked at after one window of $WINDOW seconds, and after a second one when nothing was found
# in the first.
set -u

# A program under another name is another workload.
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

# look writes what is found within two windows.
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

# What a crossing costs is measured just before: an emulated one costs what no processor's does, and more on a busy host.
# One that becomes busy in between makes the measurement wrong, which is why there are further attempts.
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

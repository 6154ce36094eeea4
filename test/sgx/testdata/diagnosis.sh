# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is always idle, one that pages, and then one that mostly makes OCALLs.
# They are analysed after one window of $WINDOW seconds, and after up to three more if there is no finding.
set -u

# A program with another name is another workload.
cp /testbed/kv /testbed/quiet
cp /testbed/pingpong /testbed/chatty
quiet -port 7000 -mib 1 >quiet.out &
quiet=$!

# up starts it with these flags. A scrape of an emulated machine takes a second, and more when its host is busy.
up() {
	./teescope up --listen 127.0.0.1:9750 --data-dir /tmp/data --interval 5s --overhead.budget 100% "$@" >>up.log 2>&1 &
	up=$!
	tries=0
	while ! wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null && [ $tries -lt 600 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

# found FILE RULE: a report has a finding of this rule.
found() { grep -A 1 "\"rule\": \"$2\"" "$1" | grep -q '"title"'; }

# look FILE RULE WINDOWS writes the findings, until one is of this rule, of at most so many windows.
look() {
	for _ in $(seq "$3"); do
		sleep "$WINDOW"
		./teescope analyze --server http://127.0.0.1:9750 --window "${WINDOW}s" --format json --all --timeout 300s >"$1" 2>>analyze.log
		found "$1" "$2" && break
	done
}

# number prints a number of a program's report.
number() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/" cost.out; }

up
paging -mib "$MIB" -working "$MIB" -count 0 >paging.out &
paging=$!
look paging.json epc-thrashing 4
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
	look chatty.json ocall-bound 2
	kill -9 $chatty
	kill $up
	wait $up
	found chatty.json ocall-bound && break
done
kill -9 $quiet

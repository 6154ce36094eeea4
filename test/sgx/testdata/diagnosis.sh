# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is quiet all the while, one that pages, and then one that makes OCALLs
# and little else. They are looked at after one window of $WINDOW seconds, and after a second one when nothing was found
# in the first. What a crossing costs here is measured before, for the emulated one costs what no processor's does.
set -u

# A program under another name is another workload.
cp /testbed/kv /testbed/quiet
cp /testbed/pingpong /testbed/chatty

# number NAME FILE prints a number of a program's report.
number() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/" "$2"; }
pingpong -count 2000 -ocalls 20 >cost.out
cost=$(awk "BEGIN { printf \"%.2fus\", 1e6 * $(number ecall_seconds cost.out) / ($(number ecalls cost.out) + $(number ocalls cost.out)) }")
echo "a crossing costs $cost" >analyze.log

quiet -port 7000 -mib 1 >quiet.out &
quiet=$!
./teescope up --listen 127.0.0.1:9750 --data-dir /tmp/data --interval 1s --overhead.budget 100% --transitions.cost "$cost" >up.log 2>&1 &
tries=0
while ! wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null && [ $tries -lt 600 ]; do
	sleep 0.1
	tries=$((tries + 1))
done

# look writes what is found within two windows.
look() {
	for _ in 1 2; do
		sleep "$WINDOW"
		./teescope analyze --server http://127.0.0.1:9750 --window "${WINDOW}s" --format json --all --timeout 60s \
			--fail-on low >"$1" 2>>analyze.log
		[ $? -eq 3 ] && break # something is found
	done
}

paging -mib "$MIB" -working "$MIB" -count 0 >paging.out &
paging=$!
look paging.json
kill -9 $paging

chatty -count 0 -ocalls 20 >chatty.out &
chatty=$!
look chatty.json
kill -9 $chatty $quiet

# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is quiet all the while, and one that pages. They are looked at after
# one window of $WINDOW seconds, and after a second one when nothing was found in the first.
set -u

# A program under another name is another workload.
cp /testbed/kv /testbed/quiet
quiet -port 7000 -mib 1 >quiet.out &
quiet=$!
./teescope up --listen 127.0.0.1:9750 --data-dir /tmp/data --interval 1s --overhead.budget 100% >up.log 2>&1 &
tries=0
while ! wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null && [ $tries -lt 600 ]; do
	sleep 0.1
	tries=$((tries + 1))
done

paging -mib "$MIB" -working "$MIB" -count 0 >paging.out &
paging=$!
for _ in 1 2; do
	sleep "$WINDOW"
	./teescope analyze --server http://127.0.0.1:9750 --window "${WINDOW}s" --format json --all --timeout 60s \
		--fail-on low >found.json 2>>analyze.log
	[ $? -eq 3 ] && break # something is found
done
kill -9 $paging $quiet

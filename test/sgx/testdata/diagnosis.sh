# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is quiet all the while, one that pages, and then one that does little
# but leave (kv -chatty 1 spends most of its time in the emulated machine's network). Each is looked at after one window
# of $WINDOW seconds, and after a second one when nothing was found in the first.
set -u

# A program under another name is another workload.
as() { cp "/testbed/$1" "/testbed/$2"; }

# look NAME RULE: what is found, in NAME.json.
look() {
	for _ in 1 2; do
		sleep "$WINDOW"
		./teescope analyze --server http://127.0.0.1:9752 --window "${WINDOW}s" --format json --all --timeout 60s >"$1.json" 2>>analyze.log
		grep -q "\"$2\"" "$1.json" && break
	done
	wget -qO "$1.metrics" http://127.0.0.1:9750/metrics
}

ready() {
	tries=0
	while ! wget -qO /dev/null "http://127.0.0.1:$1/-/ready" 2>/dev/null && [ $tries -lt 600 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

# What an OCALL costs is known in cycles, and here it is emulated: the clock at which so many cycles, 11,000, take as
# long as an OCALL does here is told as node_exporter would tell it.
pingpong -count 100 -ocalls 50 >pingpong.json
mkdir clock
sed 's/.*"seconds":\([0-9.]*\).*"ocalls":\([0-9]*\).*/\1 \2/' pingpong.json |
	awk '{printf "node_cpu_frequency_max_hertz{cpu=\"0\"} %.0f\n", 11000 * $2 / $1}' >clock/metrics
httpd -p 127.0.0.1:9751 -h clock

as kv quiet
quiet -port 7000 -mib 1 >quiet.out &
quiet=$!
./teescope agent --listen 127.0.0.1:9750 --overhead.budget 100% >agent.log 2>&1 &
./teescope server --listen 127.0.0.1:9752 --targets 127.0.0.1:9750 --scrape clock=http://127.0.0.1:9751/metrics \
	--data-dir /tmp/data --interval 1s >server.log 2>&1 &
ready 9750
ready 9752

paging -mib "$MIB" -working "$MIB" -count 0 >paging.out &
paging=$!
look paging epc-thrashing
kill -9 $paging
wait $paging

as pingpong chatty
chatty -count 0 -ocalls 50 >chatty.out &
chatty=$!
look chatty ocall-bound
kill -9 $chatty $quiet

# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine. Each name that look gets is a moment, with the figures of teescope and the counts of
# the machine.
set -u
. ./common.sh
counted=/sys/module/swsgx/parameters
free() { cat $counted/free; }

# look NAME is a moment at which programs may run, still NAME one at which no page moves, and rested NAME one at which early has the only
# enclave. The driver frees the pages of an enclave some time after its process has ended. How many are free then is not known: those of early
# may have been evicted.
look() { until_so looked "$1"; }
still() { until_so unmoved "$1"; }
rested() { until_so alone "$1"; }
looked() {
	free >"free.$1"
	cat $counted/stats >"stats.$1"
	cat /proc/uptime >"uptime.$1"
	complete "metrics.$1"
	status=$?
	free >>"free.$1"
	return $status
}
unmoved() { looked "$1" && [ "$(uniq "free.$1" | wc -l)" = 1 ]; }
alone() { unmoved "$1" && grep -q '^sgx_enclaves{state="initialized"} 1$' "metrics.$1" && grep -q '^sgx_enclaves{state="uninitialized"} 0$' "metrics.$1"; }

stat() { sed -n "s/^$1 //p" $counted/stats; }

# Waits until a counter of the machine has grown by a number.
grown() { until_so reached "$1" $(($2 + $3)); }
reached() { [ "$(stat "$1")" -ge "$2" ]; }

# A program with another name is another workload.
as() { cp "/testbed/$1" "/testbed/$2"; }

./sgx.test -test.v -test.run "Counts|Listed|Guest" >kernel.log 2>&1
echo $? >kernel.status

as kv early
early -port 7000 -mib 1 >early.json &
early=$!
grown einit 0 1

# No budget: an emulated processor takes 50 us for a context switch that is counted, so that the agent would warn of it.
./teescope agent --listen 127.0.0.1:9750 --transitions.trace on --overhead.budget 100% --watch comm=pingpong >agent.log 2>&1 &
ready() { wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null; }
until_so ready
echo 1 >/proc/sys/kernel/bpf_stats_enabled # what each hook costs
still start

as paging neighbour
evicted=$(stat ewb)
# Both page until after the scrape, which may take longer than one pass.
paging -mib "$MIB" -working "$MIB" -count 0 >paging.json &
first=$!
neighbour -mib "$MIB" -working "$MIB" -count 0 >neighbour.json &
second=$!
grown ewb "$evicted" 800
look paging
kill $first $second
wait $first $second
rested paged

# A part of a large enclave is used, and does not fit.
as paging steady
loaded=$(stat eldu)
steady -mib 12 -working 5 -count 0 >steady.json &
steady=$!
grown eldu "$loaded" 6000
look steady
kill -9 $steady
wait $steady
rested between

churn -count 8 -live 8 -pages 16 -seconds 0 >churn.json
rested churned

# Half of the enclave is added while it runs (SGX2).
as paging grower
grower -mib 2 -working 2 -dynamic 1 -count 1 >grower.json
rested grown

# Crossings are counted and timed from the time at which the functions of a process are probed. It is stopped while it is
# looked at. Each OCALL takes 2 ms.
pingpong -count 0 -ocalls 3 -pause 2000 >pingpong.json &
ping=$!
probed() { wget -qO- http://127.0.0.1:9750/metrics | grep -qE 'ocall_seconds_count.*ocall="pingpong_ocall_pong"|file="libsgx_urts.so".*state="none"'; }
until_so probed
kill -STOP $ping
until_so stopped $ping
look pinged
entered=$(stat eenter)
kill -CONT $ping
grown eenter "$entered" 400 # 100 ECALLs
kill -STOP $ping
until_so stopped $ping
look ponged
kill -9 $ping
wait $ping
rested between

# The process that created the enclave ends first. Its child continues to use it.
as twoproc orphan
entered=$(stat eenter)
orphan -count 0 -seconds 3600 >orphan.json &
parent=$!
grown eenter "$entered" 50
forked() {
	child=$(cat /proc/$parent/task/$parent/children)
	child=${child%% *}
	[ -n "$child" ]
}
until_so forked
look both
kill -9 $parent
wait $parent
look orphan
kill -9 "$child"
rested between

twoproc -count 50 >twoproc.json

# The process is killed while it is inside.
as paging victim
entered=$(stat eenter)
victim -mib 1 -working 1 -count 0 >victim.json &
victim=$!
grown eenter "$entered" 10
look victim
kill -9 $victim
rested end
echo "$early $parent $child" >pids
kill $early

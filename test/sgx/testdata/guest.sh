# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine. Each name that look gets is a moment, with the figures of teescope and the counts of
# the machine.
set -u
counted=/sys/module/swsgx/parameters
free() { cat $counted/free; }

look() {
	free >"free.$1"
	cat $counted/stats >"stats.$1"
	cat /proc/uptime >"uptime.$1"
	wget -qO "metrics.$1" http://127.0.0.1:9750/metrics
	free >>"free.$1"
}

# The driver frees pages after a process has ended: wait until as many are free as before.
settle() {
	tries=0
	while [ "$(free)" != "$1" ] && [ $tries -lt 100 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

stat() { sed -n "s/^$1 //p" $counted/stats; }

# Waits until a counter of the machine has grown by a number.
grown() {
	tries=0
	while [ "$(stat "$1")" -lt $(($2 + $3)) ] && [ $tries -lt 3000 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

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
tries=0
while ! wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null && [ $tries -lt 3000 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
echo 1 >/proc/sys/kernel/bpf_stats_enabled # what each hook costs
rest=$(free)
look start

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
settle "$rest"
look paged

# A part of a large enclave is used, and does not fit.
as paging steady
loaded=$(stat eldu)
steady -mib 12 -working 5 -count 0 >steady.json &
steady=$!
grown eldu "$loaded" 6000
look steady
kill -9 $steady
wait $steady
settle "$rest"

churn -count 8 -live 8 -pages 16 -seconds 0 >churn.json
settle "$rest"
look churned

# Half of the enclave is added while it runs (SGX2).
as paging grower
grower -mib 2 -working 2 -dynamic 1 -count 1 >grower.json
settle "$rest"
look grown

# Crossings are counted and timed from the time at which the functions of a process are probed. It is stopped while it is
# looked at. Each OCALL takes 2 ms.
pingpong -count 0 -ocalls 3 -pause 2000 >pingpong.json &
ping=$!
tries=0
until wget -qO- http://127.0.0.1:9750/metrics | grep -qE 'ocall_seconds_count.*ocall="pingpong_ocall_pong"|file="libsgx_urts.so".*state="none"' || [ $tries -ge 300 ]; do
	sleep 1
	tries=$((tries + 1))
done
kill -STOP $ping
sleep 1
look pinged
entered=$(stat eenter)
kill -CONT $ping
grown eenter "$entered" 400 # 100 ECALLs
kill -STOP $ping
sleep 1
look ponged
kill -9 $ping
wait $ping
settle "$rest"

# The process that created the enclave ends first. Its child continues to use it.
as twoproc orphan
entered=$(stat eenter)
orphan -count 0 -seconds 600 >orphan.json &
parent=$!
grown eenter "$entered" 50
child=$(cat /proc/$parent/task/$parent/children)
child=${child%% *}
look both
kill -9 $parent
sleep 1
look orphan
kill -9 "$child"
settle "$rest"

twoproc -count 50 >twoproc.json

# The process is killed while it is inside.
as paging victim
entered=$(stat eenter)
victim -mib 1 -working 1 -count 0 >victim.json &
victim=$!
grown eenter "$entered" 10
look victim
kill -9 $victim
settle "$rest"
look end
echo "$early $parent $child" >pids
kill $early

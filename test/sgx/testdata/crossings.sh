# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: each program of the testbed, with the machine's counts before and after it.
set -u
counted=/sys/module/swsgx/parameters

# Waits for up to five minutes for a condition.
until_so() {
	tries=0
	while ! "$@" && [ $tries -lt 3000 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

# A program with another name is another workload.
as() { ln "/testbed/$1" "/testbed/$2"; }

# Starts a program that stops until it is found and continued.
hold() {
	name=$1
	shift
	TESTBED_STOP=1 "$name" "$@" >"$name.json" &
	eval "pid_$name=$!"
	held=$((held + 1))
}

# Continues the program, and starts its client if it has one.
release() {
	cat $counted/stats >"stats.$1.before"
	eval "kill -CONT \$pid_$1"
	if [ -n "${2:-}" ]; then
		$2
	fi
	eval "wait \$pid_$1"
	cat $counted/stats >"stats.$1.after"
}

says() { wget -qO - http://127.0.0.1:9750/metrics | grep 'workload="ownping"' | grep -q "$1"; }
watched() { [ "$(ls -l "/proc/$agent/fd" 2>/dev/null | grep -c perf_event)" -ge "$1" ]; }
stopped() { grep -q '^State:.T' "/proc/$1/status"; }

held=0
as kv chatty
as paging grower
as pingpong ownping
hold pingpong -count 300 -ocalls 3 -threads 2
hold kv -count 2 -mib 1
hold chatty -count 2 -mib 1 -chatty 1 -port 7001
hold paging -mib 6 -working 5 -count 1
hold grower -mib 2 -working 2 -dynamic 1 -count 1
hold churn -count 6 -live 3
hold faults -cpuid 30 -rdtsc 40 -ud2 50 -spin 300
hold twoproc -count 200

echo 2 >/proc/sys/kernel/perf_event_paranoid # Debian's default of 3 refuses breakpoints
./teescope agent --listen 127.0.0.1:9750 --transitions.trace on --overhead.budget 100% \
	--watch 'comm=pingpong|kv|chatty|paging|grower|churn|faults|twoproc|ownping|paired' >agent.log 2>&1 &
agent=$!
until_so watched $held # each has its breakpoint; nothing else of the agent is a perf event here

load() { kvload -count 300; }
chat() { kvload -count 60 -depth 4 -port 7001; }

# This program begins last, because the agent looks at young processes often. It stops again when it has an enclave. Then two
# more ENCLUs have a breakpoint, which are in its runtime.
hold ownping -own 1 -count 300 -ocalls 3 -threads 2
ownping=$!
until_so watched $held
until_so stopped "$ownping"
kill -CONT "$ownping"
until_so watched $((held + 2))
until_so stopped "$ownping"
until_so says 'tee="sgx"'    # a program that is found to have an enclave has bytes that cross its boundary
until_so says 'comm="ownping"' # and it is watched
release ownping
release pingpong
release kv load
release chatty chat
release paging
release grower
release churn
release faults
release twoproc
wget -qO metrics http://127.0.0.1:9750/metrics

# Programs that differ in a known way are recorded: two or six OCALLs in each ECALL, and six once more. A repetition has a number of exits,
# not of seconds.
[ -n "${PAIRS:-}" ] || exit 0

# A command that lives shorter than the time between two scans: 100 ECALLs with an OCALL each, which take 4 ms. No other program of this
# name runs. The probes in its runtime stay for 30 s after another one has ended.
as pingpong brief
./teescope record --connect 127.0.0.1:9750 -o brief.tsrun --repeat 8 --outcome 'operations="ecalls":([0-9]+)' \
	-- brief -count 100 -pause 4000 >>brief.log 2>&1 || cat brief.log
as pingpong paired
cat >exits.sh <<'EOF'
exits() { sed -n 's/^eexit //p' /sys/module/swsgx/parameters/stats; }
until=$(($(exits) + 200))
while [ "$(exits)" -lt $until ]; do sleep 0.1; done
EOF
# timings prints how many OCALLs of the program were timed.
timings() {
	wget -qO - http://127.0.0.1:9750/metrics | awk '/^teescope_ocall_seconds_count.*workload="paired"/ { n += $NF } END { print n + 0 }'
}
timed() { [ "$(timings)" -ge $((before + 50)) ]; }
start_paired() {
	before=$(timings) # with those of the program before, which has ended
	paired -count 0 -pause 2000 -ocalls "$1" >/dev/null &
	paired=$!
	until_so timed
}
recorded() { ./teescope record --connect 127.0.0.1:9750 -o "$1.tsrun" --repeat 4 --watch comm=paired -- sh exits.sh >>record.log 2>&1 || cat record.log; }
start_paired 2
recorded few
kill $paired
wait $paired
start_paired 6
recorded many
recorded again
kill $paired
wait $paired

# A neighbour begins to page while a program is recorded. It waits for the file that the recorded command makes, and is no child of it. The
# command ends when the recorder has warned.
as paging intruder
cat >crowd.sh <<'EOF'
sh exits.sh
: >enter
tries=0
until grep -q 'unsteady so far: others used' crowded.log || [ $tries -ge 1200 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
EOF
start_paired 2
recorded lonely
(
	until_so test -e enter
	intruder -mib 6 -working 5 -count 0 >intruder.json &
	echo $! >intruder.pid
) &
./teescope record --connect 127.0.0.1:9750 -o crowded.tsrun --watch comm=paired -- sh crowd.sh >crowded.log 2>&1 || cat crowded.log
kill $paired "$(cat intruder.pid)"
kill $agent
wait $agent
. ./profiles.sh

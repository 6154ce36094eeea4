# SPDX-License-Identifier: Apache-2.0
# Part of crossings.sh: records which code leaves enclaves, and code in one, with the machine's counts before and after. Nothing else
# has an enclave meanwhile.

# recording reports whether the recorder runs. When it has ended, the waits below end too.
recording() { [ -e /proc/$recorder/exe ]; } # a process that has ended and was not waited for has no program

# The OCALLs of a program are known after an ECALL of any process of its file. So one process makes some first, and those of
# another are recorded from its first one.
as pingpong known
as pingpong calling
known -count 0 -pause 100000 >/dev/null &
known=$!
./teescope profile record --event ocalls --every 1 --for 600s --watch comm=calling -o ocalls.pb.gz >>profiles.log 2>&1 &
recorder=$!
probed() { ! recording || [ "$(ls -l /proc/$recorder/fd 2>/dev/null | grep -c bpf_link)" -ge 2 ]; } # sgx_ecall, and the functions of its table
until_so probed
calling -count 50 -ocalls 3 -threads 2 -pause 10000 >calling.json
kill -INT $recorder
wait $recorder
kill $known
wait $known

cat $counted/stats >stats.exits.before
./teescope profile record --event aex --every 1 -o aex.pb.gz -- paging -mib 6 -working 5 -count 1 >>profiles.log 2>&1
cat $counted/stats >stats.exits.after

./teescope profile record --event cpu-clock -o inside.pb.gz -- faults -cpuid 1 -rdtsc 1 -ud2 1 -spin 2000 >>profiles.log 2>&1 &
recorder=$!
mapped() { grep /dev/sgx_enclave "/proc/$(pidof faults)/maps" >inside.maps 2>/dev/null || ! recording; }
until_so mapped
wait $recorder

# The OCALLs and then the ECALLs of another program, as an agent records them while a client asks for it: one of 64 of all processes. A
# profile is made when a minute or the request has ended.
as pingpong demanded
./teescope agent --listen 127.0.0.1:9750 --control.enabled --transitions.trace off >demanded.log 2>&1 &
agent=$!
demanded -count 0 -pause 1000 -ocalls 3 >/dev/null &
demanded=$!
ends() { ! [ -e /proc/$agent/exe ]; }
taken() { wget -qO - http://127.0.0.1:9750/metrics | sed -n 's/^teescope_profile_samples_total{outcome="taken"} //p'; }
serves() { [ -n "$(taken)" ] || ends; }
until_so serves
after=
# next fetches the profile after the last one.
next() {
	wget -SqO next.pb.gz "http://127.0.0.1:9750/api/profiles/next?after=$after" 2>next.header
	[ -s next.pb.gz ] || return 1
	after=$(tr -d '\r' <next.header | sed -n 's/^ *Teescope-Profile: *//Ip')
}
for event in ocalls ecalls; do
	id=$(./teescope control profile --event $event --for 10m)
	echo "$event: $id" >>demanded.log
	before=$(taken)
	enough() { [ "$(taken)" -ge $((before + 40)) ] || ends; }
	until_so enough
	./teescope control end "${id%% *}" >>demanded.log 2>&1
	made() { next || ends; }
	until_so made
	mv next.pb.gz demanded.$event.pb.gz
	while next; do # a minute had ended before
		mv next.pb.gz demanded.$event.pb.gz
	done
done
kill $demanded $agent
wait $demanded $agent

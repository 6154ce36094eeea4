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

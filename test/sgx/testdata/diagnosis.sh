# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is always idle, one that pages, and then one that mostly makes OCALLs.
# They are analysed after one window of $WINDOW seconds, and after up to three more if there is no finding. Then advice about
# their manifests is followed, and the machine counts what that changes.
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
	while ! wget -qO /dev/null http://127.0.0.1:9750/-/ready 2>/dev/null && [ $tries -lt 3000 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}

# found FILE RULE: a report has a finding of this rule.
found() { grep -A 1 "\"rule\": \"$2\"" "$1" | grep -q '"title"'; }

# look NAME RULE WINDOWS [ARG...] writes the findings and the advice about a program, until both rest on a finding of this rule, of at
# most so many windows. On a busy host the window of the advice can differ from that of the findings.
look() {
	of=$1 rule=$2 windows=$3
	shift 3
	for _ in $(seq "$windows"); do
		sleep "$WINDOW"
		./teescope analyze --server http://127.0.0.1:9750 --window "${WINDOW}s" --format json --all --timeout 300s >"$of.json" 2>>analyze.log
		found "$of.json" "$rule" && advise "$of" "$@" && return
	done
	return 1
}

# advise NAME [ARG...] writes the advice about a manifest of Gramine for the workload of that name. It fails if no advice is about a
# finding of $rule.
advise() {
	about=$1
	shift
	./teescope advise --manifest "$about.manifest" --server http://127.0.0.1:9750 --workload "$about" --window "${WINDOW}s" --timeout 300s --json "$@" >"$about.advice" 2>>analyze.log
	grep -q "\"source\": \".*, $rule\"" "$about.advice"
}

# number prints a number of a program's report.
number() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/" cost.out; }

# sized FILE writes the advice about the size of the paging enclave, from its manifest and this machine alone.
sized() { ./teescope advise --manifest paging.manifest --machine this --json >"$1" 2>>analyze.log; }

# setting NAME KEY prints a setting of a manifest, without its unit.
setting() { sed -n "s/^$2 = \"*\([0-9]*\).*/\1/p" "$1.manifest"; }

# change NAME KEY VALUE makes the next runs use another setting.
change() { sed -i "s/^$2 = .*/$2 = $3/" "$1.manifest"; }

# counted NAME... prints the sum of counters of the machine.
counted() {
	sum=0
	for counter; do
		sum=$((sum + $(sed -n "s/^$counter //p" /sys/module/swsgx/parameters/stats)))
	done
	echo $sum
}

# page and call run programs with the settings of their manifests, as Gramine would. They print a line of what the machine and
# the program counted: pages loaded and touched, and the seconds that took; exits, ECALLs and OCALLs.
page() {
	before=$(counted eldu eldb)
	mib=$(setting paging sgx.enclave_size)
	paging -mib "$mib" -working "$mib" -count 2 >cost.out
	echo "$(($(counted eldu eldb) - before)) $(number touched) $(number seconds)"
}
call() {
	before=$(counted eexit)
	pingpong -count 50 -ocalls 20 -exitless "$(setting chatty sgx.insecure__rpc_thread_num)" >cost.out
	echo "$(($(counted eexit) - before)) $(number ecalls) $(number ocalls)"
}

cat >paging.manifest <<EOF
libos.entrypoint = "/paging"
sgx.enclave_size = "${MIB}M"
EOF
cat >chatty.manifest <<EOF
libos.entrypoint = "/chatty"
sgx.insecure__rpc_thread_num = 0
EOF

up
paging -mib "$MIB" -working "$MIB" -count 0 >paging.out &
paging=$!
look paging epc-thrashing 4
kill -9 $paging
kill $up
wait $up $paging
page >paging.counts
sized paging.over
change paging sgx.enclave_size "\"$((EPC / 2))M\""
sized paging.fits
page >>paging.counts

# The cost of a crossing is measured just before, because emulation changes it, and a busy host increases it.
# If the host becomes busy in between, the measurement is wrong. So there are several attempts.
for _ in 1 2 3; do
	pingpong -count 2000 -ocalls 20 >cost.out
	cost=$(awk "BEGIN { printf \"%.2fus\", 1e6 * $(number ecall_seconds) / ($(number ecalls) + $(number ocalls)) }")
	echo "a crossing costs $cost" >>analyze.log
	up --transitions.cost "$cost"
	chatty -count 0 -ocalls 20 >chatty.out &
	chatty=$!
	look chatty ocall-bound 2 --what-if sgx.insecure__rpc_thread_num=1
	seen=$?
	kill -9 $chatty
	kill $up
	wait $up $chatty
	[ $seen = 0 ] && break
done
call >chatty.counts
change chatty sgx.insecure__rpc_thread_num 1
call >>chatty.counts
kill -9 $quiet

# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: an enclave that is always idle, one that pages, and then one that mostly makes OCALLs, beside programs
# that do as much with one enclave or thread as others with many.
# They are analysed after one window of $WINDOW seconds, and after up to three more if there is no finding. Then advice about
# their manifests is followed, and the machine counts what that changes.
set -u

# A program with another name is another workload.
cp /testbed/kv /testbed/quiet
for name in chatty threading pooled; do cp /testbed/pingpong /testbed/$name; done
for name in forking prefork; do cp /testbed/churn /testbed/$name; done
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

# answered NAME TEXT does the same, and repeats it while the advice does not have a text. On a busy host there may be no answer in time, or
# no figures in the window.
answered() {
	for _ in 1 2 3 4; do
		advise "$1"
		grep -q "$2" "$1.advice" && return
	done
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

# processes NAME PROGRAM ENCLAVES ARG... runs a program whose ECALLs are in a process and an enclave each, or in one if its manifest
# allows no others. ENCLAVES, or else ECALLs, is how many.
processes() {
	of=$1 program=$2 n=$3
	shift 3
	if grep -q "^sys.disallow_subprocesses = true" "$of.manifest"; then
		exec "$program" -count 1 -calls "$n" "$@"
	fi
	exec "$program" -fork 1 -count "$n" "$@"
}

# started sets started to how many processes and threads the kernel has started, by what the shell does itself.
started() {
	while read -r key value; do
		[ "$key" = processes ] && started=$value
	done </proc/stat
}

# fork and create print what the machine, the kernel and the program counted, with few resources or with many: enclaves, ECALLs and the
# seconds that they took; processes and threads, ECALLs and seconds.
fork() {
	before=$(counted einit)
	(processes "$1" churn 20) >cost.out
	echo "$(($(counted einit) - before)) $(number ecalls) $(number seconds)"
}
create() {
	started
	before=$started
	pingpong -count 200 -fresh "$1" >cost.out
	started
	echo "$((started - before)) $(number ecalls) $(number seconds)"
}

cat >paging.manifest <<EOF
libos.entrypoint = "/paging"
sgx.enclave_size = "${MIB}M"
EOF
cat >chatty.manifest <<EOF
libos.entrypoint = "/chatty"
sgx.insecure__rpc_thread_num = 0
EOF
for name in forking threading pooled; do
	cat >$name.manifest <<EOF
libos.entrypoint = "/$name"
sys.disallow_subprocesses = false
EOF
done
sed 's/false/true/' forking.manifest >prefork.manifest
touch forking.advice threading.advice pooled.advice forking.started

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
	before=$(counted einit)
	chatty -count 0 -ocalls 20 >chatty.out &
	chatty=$!
	# Each of the others pauses for most of the time, and leaves the processors to chatty.
	running=
	for name in forking prefork; do
		processes $name $name 0 -pause 2000000 >/dev/null &
		running="$running $!"
	done
	threading -count 0 -fresh 1 -pause 10000 >/dev/null &
	running="$running $!"
	pooled -count 0 -pause 10000 >/dev/null &
	running="$running $!"
	look chatty ocall-bound 2 --what-if sgx.insecure__rpc_thread_num=1
	seen=$?
	kill -9 $chatty
	if [ $seen = 0 ]; then
		answered forking '"rule": "forks"'
		answered threading '"rule": "thread-creation"'
		answered pooled '"thread-creation"' # it was judged
		for _ in 1 2 3 4; do # a busy host may give a collector no time
			least=$(counted einit)
			wget -qO metrics http://127.0.0.1:9750/metrics
			most=$(counted einit)
			made=$(sed -n 's/^sgx_workload_enclaves_created_total{.*workload="forking".*} //p' metrics)
			echo "$before $least $most $made" >forking.started
			[ -n "$made" ] && break
		done
	fi
	kill -9 $running
	killall -q -9 forking # its child
	kill $up
	wait $up $chatty $running
	[ $seen = 0 ] && break
done
fork forking >forking.counts
fork prefork >>forking.counts
create 1 >threading.counts
create 0 >>threading.counts
call >chatty.counts
change chatty sgx.insecure__rpc_thread_num 1
call >>chatty.counts
kill -9 $quiet

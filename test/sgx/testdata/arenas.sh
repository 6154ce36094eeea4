# SPDX-License-Identifier: Apache-2.0
# Runs in the virtual SGX machine: threads allocate in an address space of the size that a manifest gives the enclave, with the setting
# of the manifest. Then advice about the manifest is followed.
set -u

cat >arenas.manifest.sgx <<EOF
libos.entrypoint = "/arenas"
sgx.enclave_size = "${MIB}M"
sgx.max_threads = 24
EOF

# number prints a number of the program's report.
number() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/" arenas.out; }

# allocate FILE prints what the program counted: allocations, page faults and the seconds that they took. FILE gets the advice about it,
# while it runs with a command line like that of Gramine.
allocate() {
	variable=$(sed -n 's/^loader.env.MALLOC_ARENA_MAX = "\(.*\)"/MALLOC_ARENA_MAX=\1/p' arenas.manifest.sgx)
	env $variable arenas /gramine/sgx/libpal.so init arenas -mib "$MIB" -hold 1 >arenas.out &
	arenas=$!
	until grep -q allocations arenas.out; do
		kill -0 $arenas || exit 1
		sleep 0.1
	done
	./teescope advise --pid $arenas --server http://127.0.0.1:1 --json >"$1" || exit 1
	kill -9 $arenas
	wait $arenas
	echo "$(number allocations) $(number faults) $(number seconds)"
}

allocate arenas.advice >arenas.counts
echo 'loader.env.MALLOC_ARENA_MAX = "1"' >>arenas.manifest.sgx
allocate shared.advice >>arenas.counts

// SPDX-License-Identifier: Apache-2.0

package demo

import "context"

// confidential is the script that runs in the machine of the demo of confidential virtual machines. Its disk is read
// through 1 MiB of bounce buffers. From time to time 32 readers together need more than there is, wait for each other, and end. Each
// request takes an eighth of the buffers, so one always fits: four requests of half the buffers kept failing for minutes, each
// with a part of its buffers. One reader at a time needs little. Beside them a tiny virtual machine leaves its guest thousands
// of times a second, and another one is idle. Their VMMs have names of their own, because a program is a workload.
const confidential = `
./teescope up --listen 127.0.0.1:9750 --data-dir /run/teescope --interval 5s --overhead.budget 100% --log.level warn >/dev/null &
until wget -q -O - http://127.0.0.1:9750/metrics 2>/dev/null | grep -q '^teescope_probe_attached.*vm_userspace_exit'; do sleep 2; done
for vm in storm idle; do ln -s "$(command -v qemu-tiny)" qemu-$vm; done
./qemu-storm -name guest=storm storm &
./qemu-idle -name guest=idle idle &
read_disk() { dd if=/dev/vda of=/dev/null bs=$1 count=$2 iflag=direct 2>/dev/null; }
while :; do
	readers=
	for reader in $(seq 32); do read_disk 128k 32 & readers="$readers $!"; done
	wait $readers
	for calm in $(seq 75); do read_disk 64k 64; sleep 1; done
done
`

// CVM runs the demo of confidential virtual machines until ctx ends or its time is over.
func CVM(ctx context.Context, o Options) error {
	return show(ctx, o, scene{
		options: []string{"-sgx=false", "-kvm", "-disk", "32", "-append", "swiotlb=512,force"},
		script:  []string{"sh", "-c", confidential},
		about: "teescope watches a machine that copies the data of its disk, as a confidential one does: open %s in a browser; Ctrl-C ends it.\n" +
			"Its readers (\"dd\") run out of bounce buffers each minute or two, and recover. The virtual machine \"storm\" in it leaves its guest\n" +
			"thousands of times a second, and \"idle\" does nothing. No memory is encrypted.\n",
	})
}

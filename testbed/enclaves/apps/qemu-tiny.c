// SPDX-License-Identifier: Apache-2.0
// Runs a tiny virtual machine until it is killed: qemu-tiny -name guest=NAME storm|idle. Its one processor is in real
// mode. "storm" executes CPUID 2,000 times and then waits by HLT, "idle" only waits. Both are woken ten times a second. It
// has the name and the option of QEMU, so that it is named as a virtual machine of QEMU.
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY 0x10000
#define CODE   0x1000

static const uint8_t storm[] = {
	0xbe, 0xd0, 0x07, // again: mov $2000, %si
	0x0f, 0xa2,	  // next: cpuid
	0x4e, 0x75, 0xfb, // dec %si; jnz next
	0xf4, 0xeb, 0xf5, // hlt; jmp again
};
static const uint8_t idle[] = {0xf4, 0xeb, 0xfd}; // again: hlt; jmp again

static int must(int result, const char *what)
{
	if (result >= 0)
		return result;
	perror(what);
	exit(1);
}

static void *mapped(int fd, size_t size)
{
	int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	must(p == MAP_FAILED ? -1 : 0, "mmap");
	return p;
}

// Returns a virtual processor that executes code, and the state that it shares with KVM.
static int create(const uint8_t *code, size_t size, struct kvm_run **run)
{
	int kvm = must(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	int vm = must(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM"), vcpu;
	uint8_t *memory = mapped(-1, MEMORY);
	struct kvm_userspace_memory_region region = {.memory_size = MEMORY,
						     .userspace_addr = (uintptr_t)memory};
	struct kvm_regs regs = {.rip = CODE, .rflags = 2};
	struct kvm_sregs sregs;

	memcpy(memory + CODE, code, size);
	must(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	vcpu = must(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
	*run = mapped(vcpu, must(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE"));
	must(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.base = sregs.cs.selector = 0;
	must(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	must(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");
	return vcpu;
}

int main(int argc, char **argv)
{
	int storms = argc == 4 && !strcmp(argv[3], "storm"), vcpu;
	struct kvm_run *run;

	if (argc != 4 || strcmp(argv[1], "-name") || (!storms && strcmp(argv[3], "idle"))) {
		fprintf(stderr, "usage: %s -name guest=NAME storm|idle\n", argv[0]);
		return 2;
	}
	vcpu = storms ? create(storm, sizeof(storm), &run) : create(idle, sizeof(idle), &run);
	for (;;) {
		if (ioctl(vcpu, KVM_RUN, 0) < 0) {
			if (errno == EINTR || errno == EAGAIN)
				continue;
			must(-1, "KVM_RUN");
		}
		if (run->exit_reason == KVM_EXIT_HLT) {
			usleep(100000);
		} else if (run->exit_reason != KVM_EXIT_INTR) {
			fprintf(stderr, "the virtual machine left with reason %u\n",
				run->exit_reason);
			return 1;
		}
	}
}

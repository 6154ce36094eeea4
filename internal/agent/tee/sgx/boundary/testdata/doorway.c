// SPDX-License-Identifier: Apache-2.0
// Executes one instruction with the numbers of EENTER and ERESUME in RAX, as the vDSO executes ENCLU. Prints its
// address. Then each line "ENTERS RESUMES WHERE" executes it so often: in this thread (0), in four threads that
// exist from the start (1), in four new threads (2), in a child and a thread of the child (3), or after executing
// itself (4).
//
// With OWN it executes ENCLU, twice in its code, which raises an exception on a processor without enclaves, and maps a
// file that looks like an enclave. The same bytes are also data between functions, and in the middle of an instruction
// that is executed once for each command.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

long way_in(long leaf);
extern char instruction[];
#ifdef OWN
long back_in(long leaf);
unsigned int number(void);
asm("	.globl way_in, instruction, back_in, number\n"
    "	.type way_in, @function\n"
    "way_in:	mov %rdi, %rax\n"
    "instruction:	.byte 0x0f, 0x01, 0xd7\n"
    "	ret\n"
    "	.size way_in, .-way_in\n"
    "	.type table, @object\n"
    "table:	.byte 1, 2, 3, 4, 0x0f, 0x01, 0xd7, 0\n"
    "	.size table, .-table\n"
    "	.type number, @function\n"
    "number:	mov $0x00d7010f, %eax\n"
    "	ret\n"
    "	.size number, .-number\n"
    "	.type back_in, @function\n"
    "back_in:	push %rbx\n"
    "	mov %rdi, %rax\n"
    "	.byte 0x0f, 0x01, 0xd7\n"
    "	pop %rbx\n"
    "	ret\n"
    "	.size back_in, .-back_in\n");

static void skip(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3;
}

// The folder is another one for this program only.
static void map_enclave(void)
{
	struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
	int fd;

	sigaction(SIGILL, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev", "tmpfs", 0, NULL))
		exit(2);
	fd = open("/dev/sgx_enclave", O_RDWR | O_CREAT, 0600);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		exit(3);
}
#else
#define back_in way_in
asm("	.globl way_in, instruction\n"
    "way_in:	mov %rdi, %rax\n"
    "instruction:	nop\n"
    "	ret\n");
#endif

enum { THREADS = 4 };
static long enters, resumes;
static pthread_barrier_t begin, end;

static void *execute(void *arg)
{
	for (long i = 0; i < enters; i++)
		way_in(2);
	for (long i = 0; i < resumes; i++)
		back_in(3);
	way_in(4); // EEXIT: counts as neither
	return arg;
}

static void *wait_and_execute(void *arg)
{
	do {
		pthread_barrier_wait(&begin);
		execute(arg);
	} while (pthread_barrier_wait(&end) <= 0);
	return NULL;
}

static void in_new_threads(int n)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, execute, NULL);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void in_child(void)
{
	pid_t child = fork();

	if (!child) {
		execute(NULL);
		in_new_threads(1);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	int where;

	(void)argc;
#ifdef OWN
	map_enclave();
#endif
	setvbuf(stdin, NULL, _IONBF, 0);
	pthread_barrier_init(&begin, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_and_execute, NULL);
	}
	printf("%lu\n", (unsigned long)instruction);
	fflush(stdout);
	while (scanf("%ld %ld %d", &enters, &resumes, &where) == 3) {
#ifdef OWN
		if (number() != 0xd7010f)
			return 4;
#endif
		if (where == 0)
			execute(NULL);
		if (where == 1) {
			pthread_barrier_wait(&begin);
			pthread_barrier_wait(&end);
		}
		if (where == 2)
			in_new_threads(THREADS);
		if (where == 3)
			in_child();
		if (where == 4)
			execv("/proc/self/exe", argv);
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}

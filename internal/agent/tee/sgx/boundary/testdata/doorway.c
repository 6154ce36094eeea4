// SPDX-License-Identifier: Apache-2.0
// Executes one instruction with the numbers of EENTER and ERESUME in RAX, as the vDSO executes ENCLU. Prints its
// address. Then each line "ENTERS RESUMES WHERE" executes it so often: in this thread (0), in four threads that
// exist from the start (1), in four new threads (2), in a child and a thread of the child (3), or after executing
// itself (4).
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

long way_in(long leaf);
extern char instruction[];
asm("	.globl way_in, instruction\n"
    "way_in:	mov %rdi, %rax\n"
    "instruction:	nop\n"
    "	ret\n");

enum { THREADS = 4 };
static long enters, resumes;
static pthread_barrier_t begin, end;

static void *execute(void *arg)
{
	for (long i = 0; i < enters; i++)
		way_in(2);
	for (long i = 0; i < resumes; i++)
		way_in(3);
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

// SPDX-License-Identifier: Apache-2.0
/*
 * Calls functions in each other and writes their known figures: "NAME CALLS INSIDE OUTSIDE", with the nanoseconds
 * between the first and last statement of the function, and those that its caller has measured around it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTION __attribute__((noinline, noclone))

struct known {
	long calls, inside, outside;
};

static __thread struct known roots, children, grandchildren;

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Calls a function and adds to its known figures. */
#define TIMED(known, call)                                                                         \
	do {                                                                                       \
		long began = now();                                                                \
		call;                                                                              \
		(known).outside += now() - began;                                                  \
		(known).calls++;                                                                   \
	} while (0)

static void spin(long until)
{
	while (now() < until)
		;
}

FUNCTION void empty(void)
{
	__asm__ volatile("");
}

FUNCTION void grandchild(void)
{
	long began = now();

	spin(began + 20000);
	grandchildren.inside += now() - began;
}

FUNCTION void child(void)
{
	long began = now();

	TIMED(grandchildren, grandchild());
	spin(now() + 10000);
	children.inside += now() - began;
}

FUNCTION void root(void)
{
	long began = now();

	TIMED(children, child());
	spin(now() + 10000);
	roots.inside += now() - began;
}

/* Calls itself. */
FUNCTION int recursive(int n)
{
	if (!n)
		return 0;
	n = recursive(n - 1);
	__asm__ volatile("" : "+r"(n)); /* keeps the compiler from making it a loop */
	return n;
}

FUNCTION void around_recursive(int n)
{
	recursive(n);
	__asm__ volatile("");
}

/* Leaves two functions at once. */
static jmp_buf back;

FUNCTION void jumps(void)
{
	__asm__ volatile("");
	longjmp(back, 1);
}

FUNCTION void around_jumps(void)
{
	if (!setjmp(back))
		jumps();
	empty();
}

/* Calls a function before it leaves two at once. */
FUNCTION void jumps_late(void)
{
	grandchild();
	longjmp(back, 1);
}

FUNCTION void late(void)
{
	if (!setjmp(back))
		jumps_late();
	spin(now() + 20000);
}

/* Has the name of a function that saves its return address. */
FUNCTION __attribute__((used)) void savectx(void)
{
	__asm__ volatile("");
}

/* Call each other, and leave all at once. */
FUNCTION void mutual(int n);

FUNCTION void other_of_mutual(int n)
{
	mutual(n - 1);
	__asm__ volatile("");
}

FUNCTION void mutual(int n)
{
	grandchild();
	if (n)
		other_of_mutual(n);
	else
		longjmp(back, 1);
	__asm__ volatile("");
}

FUNCTION void leaves_mutual(void)
{
	if (!setjmp(back))
		mutual(3);
	empty();
}

/* Calls a function and does not return. */
FUNCTION void ends(void)
{
	grandchild();
	grandchild();
	exit(0);
}

/* Two functions, of which the kernel emulates the first instruction of one and executes that of the other in a single step. */
__asm__(".type pushes, @function\npushes: push %rbp\n pop %rbp\n ret\n.size pushes, . - pushes\n"
	".type subtracts, @function\nsubtracts: sub $8, %rsp\n add $8, %rsp\n ret\n.size "
	"subtracts, . - subtracts\n");
void pushes(void);
void subtracts(void);

FUNCTION void both(void)
{
	pushes();
	subtracts();
	subtracts();
	spin(now() + 20000);
}

/* Ends by a jump to another function, which gcc makes of the call at -O2. */
FUNCTION void tail(void)
{
	empty();
}

FUNCTION void around_tail(void)
{
	tail();
	__asm__ volatile("");
}

FUNCTION void many(void)
{
	for (int i = 0; i < 100; i++)
		empty();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known all[3];

static void *thread(void *calls)
{
	for (long i = 0; i < (long)calls; i++)
		TIMED(roots, root());
	pthread_mutex_lock(&lock);
	struct known *mine[] = {&roots, &children, &grandchildren};
	for (int i = 0; i < 3; i++) {
		all[i].calls += mine[i]->calls;
		all[i].inside += mine[i]->inside;
		all[i].outside += mine[i]->outside;
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Calls a function in many threads, one after the other, before it returns. */
FUNCTION void crowd(long threads);

static void *one(void *unused)
{
	crowd(0);
	return unused;
}

FUNCTION void crowd(long threads)
{
	pthread_t thread;

	for (long i = 0; i < threads; i++) {
		pthread_create(&thread, NULL, one, NULL);
		pthread_join(thread, NULL);
	}
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	const char *what = argv[1], *names[] = {"root", "child", "grandchild"};
	long n = atol(argv[2]);
	pthread_t threads[4];

	child(); /* not within the root */
	memset(&children, 0, sizeof(children));
	memset(&grandchildren, 0, sizeof(grandchildren));
	if (!strcmp(what, "threads")) {
		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, thread, (void *)n);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < 3; i++)
			printf("%s %ld %ld %ld\n", names[i], all[i].calls, all[i].inside,
			       all[i].outside);
		return 0;
	}
	if (!strcmp(what, "crowd"))
		crowd(n);
	for (long i = 0; i < n; i++) {
		if (!strcmp(what, "recursive"))
			around_recursive(5);
		if (!strcmp(what, "late"))
			late();
		if (!strcmp(what, "mutual"))
			leaves_mutual();
		if (!strcmp(what, "ends"))
			ends();
		if (!strcmp(what, "both"))
			both();
		if (!strcmp(what, "deep"))
			around_recursive(20);
		if (!strcmp(what, "jumps"))
			around_jumps();
		if (!strcmp(what, "tail"))
			around_tail();
		if (!strcmp(what, "many"))
			many();
	}
	return 0;
}

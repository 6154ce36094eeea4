// SPDX-License-Identifier: Apache-2.0
// The module's self-test: compares the emulated instructions with the SDM, and with what the driver and the
// vDSO expect. Prints a line for each check. The exit status is 1 if one failed.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <asm/sgx.h>
#include "../urts/urts.h"
#include "app.h"
#include "cmac.h"
#include "selftest.h"

enum { LEAF_EENTER = 2 };

static int failures;

#define CHECK(ok, ...)                                                                             \
	do {                                                                                       \
		bool ok_ = (ok);                                                                   \
		printf("%s ", ok_ ? "ok  " : "FAIL");                                              \
		printf(__VA_ARGS__);                                                               \
		printf("\n");                                                                      \
		failures += !ok_;                                                                  \
	} while (0)

static const struct {
	size_t count;
} ocall_table_selftest = {0};

static long call(sgx_enclave_id_t eid, int index, struct selftest *t)
{
	return sgx_ecall(eid, index, &ocall_table_selftest, t);
}

static sgx_enclave_id_t create(size_t heap_pages)
{
	return create_enclave("selftest",
			      &(struct testbed_config){.heap_pages = heap_pages, .threads = 2});
}

// Returns one value of the module's ground truth.
static long truth(const char *name)
{
	FILE *f = fopen("/sys/module/swsgx/parameters/stats", "r");
	char line[64];
	long value;

	while (f && fscanf(f, "%63s %ld", line, &value) == 2)
		if (!strcmp(line, name)) {
			fclose(f);
			return value;
		}
	fprintf(stderr, "selftest: the module has no counter %s\n", name);
	exit(1);
}

static void set_param(const char *name, const char *value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/swsgx/parameters/%s", name);
	f = fopen(path, "w");
	if (!f || fputs(value, f) < 0 || fclose(f)) {
		perror(path);
		exit(1);
	}
}

// Pages become free a little later if ksgxd has the last reference.
static long free_when(long want)
{
	for (int i = 0; i < 200 && truth("free") != want; i++)
		usleep(10000);
	return truth("free");
}

static void test_ecalls(sgx_enclave_id_t eid)
{
	struct selftest t = {};
	long before = truth("eexit");

	for (int i = 0; i < 5000; i++)
		must(call(eid, ECALL_COUNT, &t), "counting");
	CHECK(t.value == 5000, "5000 ECALLs counted %lu", t.value);
	CHECK(truth("eexit") - before == 5000, "the module counted %ld EEXITs",
	      truth("eexit") - before);
}

static void test_thread_state(sgx_enclave_id_t eid)
{
	struct selftest t = {};
	uint64_t heap = 0, word = 0x77, back = 0;
	long reads = truth("edbgrd"), writes = truth("edbgwr");
	struct call raw;
	int mem = open("/proc/self/mem", O_RDWR);

	errno = 0;
	must(call(eid, ECALL_BASES, &t), "reading FS and GS");
	CHECK(t.value == t.value2 && t.value && !(t.value & 4095) && !errno,
	      "FS and GS have the values of the TCS inside, and their own outside");
	CHECK(pread(mem, &heap, 8, t.value + TD_HEAP) == 8 && heap && truth("edbgrd") - reads == 1,
	      "EDBGRD by /proc/self/mem: %lx", heap);
	CHECK(pwrite(mem, &word, 8, t.value + 128) == 8 &&
		      pread(mem, &back, 8, t.value + 128) == 8 && back == word &&
		      truth("edbgwr") > writes,
	      "EDBGWR by /proc/self/mem: %lx", back);
	close(mem);
	CHECK(!vdso_call(t.value, LEAF_EENTER, 0, NULL, &raw) && raw.leaf == LEAF_EENTER &&
		      raw.vector == 14,
	      "EENTER on a page that is not a TCS: leaf %u, vector %u", raw.leaf, raw.vector);
}

static void test_traps(sgx_enclave_id_t eid)
{
	long cpuid = truth("cpuid"), rdtsc = truth("rdtsc"), aex = truth("aex_exception");
	struct selftest t = {};

	must(call(eid, ECALL_TRAPS, &t), "CPUID and RDTSC");
	CHECK(t.value == 1 && t.value2 == 210, "CPUID, RDTSC and CPUID are #UD: handler saw %lu",
	      t.value2);
	CHECK(truth("cpuid") - cpuid == 2 && truth("rdtsc") - rdtsc == 1 &&
		      truth("aex_exception") - aex == 3,
	      "the module trapped %ld CPUIDs and %ld RDTSCs", truth("cpuid") - cpuid,
	      truth("rdtsc") - rdtsc);
}

static volatile uint64_t raw_tcs;
static volatile int sigills, sigills_at_aep;

// Acts like a runtime without the vDSO: enters the enclave's handler, and returns to the AEP.
static void on_sigill(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	const uint8_t *ip = (uint8_t *)c->uc_mcontext.gregs[16]; // REG_RIP
	struct call handler;

	(void)signal, (void)info;
	sigills++;
	sigills_at_aep += !memcmp(ip, "\x0f\x01\xd7", 3);
	if (vdso_call(raw_tcs, LEAF_EENTER, ECMD_EXCEPT, NULL, &handler) || handler.value)
		abort();
}

// EENTER without the vDSO. The AEP is the same ENCLU, which then executes ERESUME.
static long raw_enter(uint64_t tcs, long command, void *ms)
{
	uint64_t leaf = LEAF_EENTER;

	asm volatile("lea 1f(%%rip), %%rcx\n"
		     "1:\t.byte 0x0f, 0x01, 0xd7"
		     : "+a"(leaf), "+b"(tcs), "+D"(command), "+S"(ms)
		     :
		     : "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
		       "cc");
	return command;
}

// CPUID and RDTSC when exceptions become signals, as under Gramine.
static void test_traps_by_signal(sgx_enclave_id_t eid)
{
	struct sigaction action = {.sa_sigaction = on_sigill, .sa_flags = SA_SIGINFO}, before;
	struct selftest t = {};
	long reason;

	must(call(eid, ECALL_BASES, &t), "finding the TCS");
	raw_tcs = t.value - (THREAD_DATA - THREAD_TCS) * PAGE;
	t = (struct selftest){};
	sigaction(SIGILL, &action, &before);
	reason = raw_enter(raw_tcs, ECALL_TRAPS, &t);
	sigaction(SIGILL, &before, NULL);
	CHECK(reason == OCMD_ERET && t.value == 1 && t.value2 == 210,
	      "CPUID and RDTSC by signals: handler saw %lu", t.value2);
	CHECK(sigills == 3 && sigills_at_aep == 3, "%d SIGILLs, %d of them at the AEP", sigills,
	      sigills_at_aep);
}

static void test_fault(void)
{
	struct selftest t = {.address = 0x1000};
	sgx_enclave_id_t eid = create(1);

	CHECK(call(eid, ECALL_READ, &t) == SGX_ERROR_ENCLAVE_CRASHED,
	      "a bad address inside ends the ECALL");
	must(sgx_destroy_enclave(eid), "destroying the enclave");
}

static volatile sig_atomic_t alarms;
static volatile uint64_t stop;
static volatile uint64_t low, high;
static volatile int seen_inside;

static void on_alarm(int signal, siginfo_t *info, void *context)
{
	uint64_t ip = ((ucontext_t *)context)->uc_mcontext.gregs[16]; // REG_RIP

	(void)signal, (void)info;
	seen_inside += ip >= low && ip < high;
	if (++alarms == 20)
		stop = 1;
}

// Signals inside the enclave: the handler must see the AEP, never an address of the enclave.
static void test_signals(sgx_enclave_id_t eid)
{
	struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO};
	struct itimerval tick = {{0, 10000}, {0, 10000}}, none = {};
	struct selftest t = {};

	must(call(eid, ECALL_BASES, &t), "finding the enclave");
	low = t.value - (64 << 20);
	high = t.value + 4096;
	t = (struct selftest){.address = (uint64_t)&stop, .seed = 0x1122334455667788};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &tick, NULL);
	must(call(eid, ECALL_SSE, &t), "waiting for signals");
	setitimer(ITIMER_REAL, &none, NULL);
	CHECK(alarms >= 20 && !seen_inside, "%d signals inside, %d saw the enclave", alarms,
	      seen_inside);
	CHECK(t.value2 == 1, "SSE registers survive them");
}

static void test_keys(sgx_enclave_id_t eid)
{
	struct selftest a = {.seed = 1}, b = {.seed = 2};
	uint8_t mac[16];

	must(call(eid, ECALL_KEYS, &a), "EREPORT and EGETKEY");
	must(call(eid, ECALL_KEYS, &b), "EREPORT and EGETKEY");
	aes_cmac(a.key, a.report, 384, mac);
	CHECK(!memcmp(mac, a.report + 416, 16),
	      "the report's MAC is AES-CMAC under the report key");
	CHECK(!memcmp(a.key, b.key, 16) && memcmp(a.report + 416, b.report + 416, 16),
	      "another report has the same key and another MAC");
}

static int enclave_fd(void)
{
	char link[64];

	for (int fd = 3; fd < 64; fd++) {
		char path[32];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n > 0 && !strncmp(link, "/dev/sgx_enclave", n))
			return fd;
	}
	return -1;
}

// Returns the offset of the heap from the enclave's base, which is aligned to its size.
static uint64_t heap_of(sgx_enclave_id_t eid)
{
	struct selftest t = {};

	must(call(eid, ECALL_HEAP, &t), "finding the heap");
	return t.value;
}

// EMODPR, EMODT and EREMOVE by the driver's ioctls. The enclave accepts each (SGX2).
static void test_modify(sgx_enclave_id_t eid)
{
	const uint64_t heap_offset = heap_of(eid);
	struct sgx_enclave_restrict_permissions restrict_r = {
		.offset = heap_offset, .length = PAGE, .permissions = 1};
	struct sgx_enclave_modify_types trim = {
		.offset = heap_offset, .length = PAGE, .page_type = 4};
	struct sgx_enclave_remove_pages remove = {.offset = heap_offset, .length = PAGE};
	struct selftest t = {.seed = 0x221}; // REG, PR, R
	long removed = truth("eremove");
	int fd = enclave_fd();

	CHECK(!ioctl(fd, SGX_IOC_ENCLAVE_RESTRICT_PERMISSIONS, &restrict_r) &&
		      !call(eid, ECALL_MODIFY, &t) && t.value == 0,
	      "EMODPR and EACCEPT: %lu, errno %d", t.value, errno);
	CHECK(!call(eid, ECALL_MODIFY, &t) && t.value == 19,
	      "EACCEPT of an accepted page: error %lu", t.value);
	t.seed = 0x410; // TRIM, MODIFIED
	CHECK(!ioctl(fd, SGX_IOC_ENCLAVE_MODIFY_TYPES, &trim) && !call(eid, ECALL_MODIFY, &t) &&
		      t.value == 0,
	      "EMODT and EACCEPT: %lu, errno %d", t.value, errno);
	CHECK(!ioctl(fd, SGX_IOC_ENCLAVE_REMOVE_PAGES, &remove) && truth("eremove") - removed == 1,
	      "the page is removed, errno %d", errno);
}

// How the driver reports errors of EINIT, and a SECS that ECREATE refuses.
static void test_refusals(void)
{
	static uint8_t secs[PAGE] __attribute__((aligned(4096)));
	struct sgx_enclave_create c = {.src = (uint64_t)secs};
	struct sgx_enclave_provision p;
	uint64_t *word = (uint64_t *)secs;
	int fd = open("/dev/sgx_enclave", O_RDWR);
	sgx_enclave_id_t eid;
	long failed;

	p.fd = open("/dev/sgx_provision", O_RDONLY);
	CHECK(!ioctl(fd, SGX_IOC_ENCLAVE_PROVISION, &p), "/dev/sgx_provision");
	word[0] = 3 * PAGE;	      // SIZE
	word[1] = PAGE;		      // BASEADDR
	*(uint32_t *)(secs + 16) = 1; // SSAFRAMESIZE
	word[6] = 4;		      // ATTRIBUTES: MODE64BIT
	word[7] = 3;		      // XFRM
	CHECK(ioctl(fd, SGX_IOC_ENCLAVE_CREATE, &c) && errno == EINVAL,
	      "ECREATE refuses a size that is not a power of two");
	word[0] = 16 * PAGE;
	CHECK(ioctl(fd, SGX_IOC_ENCLAVE_CREATE, &c) && errno == EIO,
	      "ECREATE refuses a base that is not aligned");
	close(p.fd);
	close(fd);

	set_param("einit_ret", "8"); // SGX_INVALID_SIGNATURE
	set_param("einit_times", "1");
	fprintf(stderr, "(the next error is expected: an enclave is refused)\n");
	CHECK(sgx_create_enclave("/testbed/selftest.enclave.so", 1, NULL, NULL, &eid, NULL) ==
		      SGX_ERROR_UNEXPECTED,
	      "EINIT refuses a signature");
	failed = truth("einit_failed");
	set_param("einit_ret", "128"); // SGX_UNMASKED_EVENT: the driver tries again
	set_param("einit_times", "60");
	must(sgx_destroy_enclave(create(1)), "EINIT with interrupts");
	CHECK(truth("einit_failed") - failed == 60, "EINIT is interrupted %ld times",
	      truth("einit_failed") - failed);
}

static void test_vepc(void)
{
	long before = truth("free"), during;
	int fd = open("/dev/sgx_vepc", O_RDWR);
	volatile char *m = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (m == MAP_FAILED) {
		CHECK(false, "/dev/sgx_vepc: errno %d", errno);
		return;
	}
	for (int i = 0; i < 64; i++)
		(void)m[i * PAGE];
	during = truth("free");
	CHECK(before - during == 64 && ioctl(fd, SGX_IOC_VEPC_REMOVE_ALL, 0) == 0,
	      "/dev/sgx_vepc takes %ld pages", before - during);
	munmap((void *)m, 64 * PAGE);
	close(fd);
}

static void *wait_inside(void *arg)
{
	struct selftest t = {.address = (uint64_t)&stop};

	must(call(*(sgx_enclave_id_t *)arg, ECALL_WAIT, &t), "waiting");
	return NULL;
}

// Two heaps that do not fit in the EPC together. A second thread is inside the whole time.
static int page_a_lot(long pages)
{
	sgx_enclave_id_t eid = create(pages);
	struct selftest t = {.seed = getpid()};
	pthread_t thread;
	uint64_t bad = 0;

	stop = 0;
	pthread_create(&thread, NULL, wait_inside, &eid);
	must(call(eid, ECALL_FILL, &t), "filling");
	for (int i = 0; i < 2; i++) {
		must(call(eid, ECALL_VERIFY, &t), "verifying");
		bad += t.value;
	}
	stop = 1;
	pthread_join(thread, NULL);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	return bad != 0;
}

static void test_paging(long pages)
{
	long written = truth("ewb"), loaded = truth("eldu");
	int a, b;
	pid_t first = fork(), second;

	if (!first)
		_exit(page_a_lot(pages));
	second = fork();
	if (!second)
		_exit(page_a_lot(pages));
	waitpid(first, &a, 0);
	waitpid(second, &b, 0);
	written = truth("ewb") - written;
	loaded = truth("eldu") - loaded;
	CHECK(!a && !b, "two enclaves of %ld pages keep their content", pages);
	CHECK(written > 0 && loaded > 0, "%ld pages were evicted, %ld loaded back", written,
	      loaded);
}

static void test_kill(void)
{
	long before = truth("free"), during;
	pid_t child = fork();

	if (!child) {
		stop = 0;
		sgx_enclave_id_t eid = create(100);

		wait_inside(&eid);
		_exit(0);
	}
	while (!truth("inside"))
		usleep(10000);
	during = truth("free");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(during < before && free_when(before) == before,
	      "SIGKILL inside: %ld, %ld, %ld pages free", before, during, truth("free"));
}

// Each entry has an exit. The counters are read again if a thread entered or left between two lines.
static void test_identities(void)
{
	long in = 0, out = 1;

	for (int i = 0; i < 10 && in != out; i++) {
		in = truth("eenter") + truth("eresume");
		out = truth("eexit") + truth("aex") + truth("inside");
	}
	CHECK(in == out, "EENTER + ERESUME = %ld, EEXIT + AEX + inside = %ld", in, out);
	CHECK(!truth("aex_lost"), "no AEX was lost");
	CHECK(!truth("cpuid_untrapped"), "no CPUID was left untrapped");
}

int main(int argc, char **argv)
{
	static long pages = 1024;
	const struct option list[] = {
		{"pages", &pages, "heap of each of the two paging enclaves"},
		{},
	};
	long all, used, added, va;
	sgx_enclave_id_t eid;

	options(argc, argv, list);
	setvbuf(stdout, NULL, _IOLBF, 0);
	all = truth("free");
	added = truth("eadd");
	va = truth("epa");
	eid = create(16);
	used = all - truth("free");
	CHECK(used == truth("eadd") - added + truth("epa") - va + 1,
	      "an enclave takes %ld EPC pages", used);
	test_ecalls(eid);
	test_thread_state(eid);
	test_traps(eid);
	test_traps_by_signal(eid);
	test_signals(eid);
	test_keys(eid);
	test_modify(eid);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	CHECK(free_when(all) == all, "all EPC pages are back: %ld of %ld", truth("free"), all);
	test_fault();
	test_refusals();
	test_vepc();
	test_kill();
	test_paging(pages);
	CHECK(free_when(all) == all, "all EPC pages are back: %ld of %ld", truth("free"), all);
	test_identities();
	printf("{\"program\":\"selftest\",\"failures\":%d}\n", failures);
	return failures != 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ground truth for tests: /sys/module/swsgx/parameters/{stats,free,ring}.
 *
 * stats has one "name value" per line, always with the same names in the same order. README.md documents them.
 */
#include "swsgx.h"

struct counters count;

void bump(u64 *counter)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	++*counter;
	raw_spin_unlock_irqrestore(&lock, flags);
}

static const char *const encls_name[ENCLS_LEAVES] = {
	"ecreate", "eadd",   "einit", "eremove", "edbgrd", "edbgwr", "eextend", "eldb",
	"eldu",	   "eblock", "epa",   "ewb",	 "etrack", "eaug",   "emodpr",	"emodt",
};
static const char *const enclu_name[ENCLU_LEAVES] = {
	"ereport", "egetkey", "eenter", "eresume", "eexit", "eaccept", "emodpe", "eacceptcopy",
};
static const char *const aex_name[AEX_CAUSES] = {
	"aex_page_fault", "aex_operand",       "aex_exception", "aex_timer",  "aex_device",
	"aex_reschedule", "aex_function_call", "aex_schedule",	"aex_signal", "aex_kick",
};

/* Output of one parameter: at most a page. */
struct out {
	char *text;
	int n;
};

static void line(struct out *o, const char *name, const char *suffix, u64 value)
{
	o->n += scnprintf(o->text + o->n, PAGE_SIZE - o->n, "%s%s %llu\n", name, suffix, value);
}

static void epcm_lines(struct out *o)
{
	u64 valid = 0, inside = 0;
	unsigned long flags, j;
	struct epcm *tcs;
	int i;

	raw_spin_lock_irqsave(&lock, flags);
	list_for_each_entry(tcs, &busy, busy) inside++;
	raw_spin_unlock_irqrestore(&lock, flags);
	for (i = 0; i < nr_sections; i++)
		for (j = 0; j < sections[i].size >> PAGE_SHIFT; j++)
			valid += sections[i].epcm[j].valid;
	line(o, "inside", "", inside);
	line(o, "valid", "", valid);
	line(o, "free", "", atomic_long_read(sym.nr_free));
}

static int stats_get(char *text, const struct kernel_param *param)
{
	struct out o = {text};
	u64 aex = 0;
	int i;

	for (i = 0; i < ENCLS_LEAVES; i++) {
		line(&o, encls_name[i], "", count.encls[i]);
		line(&o, encls_name[i], "_failed", count.encls_failed[i]);
	}
	for (i = 0; i < ENCLU_LEAVES; i++) {
		line(&o, enclu_name[i], "", count.enclu[i]);
		line(&o, enclu_name[i], "_failed", count.enclu_failed[i]);
	}
	for (i = 0; i < AEX_CAUSES; i++)
		aex += count.aex[i];
	line(&o, "aex", "", aex);
	for (i = 0; i < AEX_CAUSES; i++)
		line(&o, aex_name[i], "", count.aex[i]);
	line(&o, "aex_lost", "", count.aex_lost);
	line(&o, "ewb_not_tracked", "", count.not_tracked);
	line(&o, "ewb_thread_inside", "", count.kick);
	line(&o, "ipi", "", count.ipi);
	line(&o, "fault_in", "", count.faultin);
	line(&o, "xrstor", "", count.xrstor);
	line(&o, "xrstor_compact", "", count.xrstor_compact);
	line(&o, "cpuid", "", count.cpuid);
	line(&o, "cpuid_untrapped", "", count.cpuid_untrapped);
	line(&o, "rdtsc", "", count.rdtsc);
	epcm_lines(&o);
	return o.n;
}
static const struct kernel_param_ops stats_ops = {.get = stats_get};
module_param_cb(stats, &stats_ops, NULL, 0444);

static int free_get(char *text, const struct kernel_param *param)
{
	return sprintf(text, "%ld\n", atomic_long_read(sym.nr_free));
}
static const struct kernel_param_ops free_ops = {.get = free_get};
module_param_cb(free, &free_ops, NULL, 0444);

/* The last events, for debugging. */
static struct event {
	char what;
	s8 arg;
	u32 pid;
	u64 ip, value;
} ring[128];
static atomic_t ring_next;

void note(char what, int arg, u64 ip, u64 value)
{
	u32 n = (u32)atomic_inc_return(&ring_next) % ARRAY_SIZE(ring);

	ring[n] = (struct event){what, arg, current->pid, ip, value};
}

static int ring_get(char *text, const struct kernel_param *param)
{
	int i, n = 0, last = atomic_read(&ring_next);

	for (i = 1; i <= ARRAY_SIZE(ring); i++) {
		struct event *e = &ring[(u32)(last + i) % ARRAY_SIZE(ring)];

		if (e->what)
			n += scnprintf(text + n, PAGE_SIZE - n, "%c%d %u %llx %llx\n", e->what,
				       e->arg, e->pid, e->ip, e->value);
	}
	return n;
}
static const struct kernel_param_ops ring_ops = {.get = ring_get};
module_param_cb(ring, &ring_ops, NULL, 0444);

// SPDX-License-Identifier: Apache-2.0
// A process of which some reads never end, because a file system in user space never answers.
// "stuck lock DIR" holds its own mmap_lock: one thread reads a page of a silent file through
// /proc/self/mem, and another waits to map memory, so that every later reader of the lock waits.
// "stuck exe DIR NAME" runs a copy of itself from the file system, which then never answers a
// request for its attributes. "stuck map DIR NAME" maps a file that is never readable.
// The file system is mounted in a mount namespace of the process. It prints "ready".
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOT = 1, FILE_NODE = 2, LARGEST = 1 << 20 };

static char *content; // of the file
static size_t length;
static volatile int *silent; // shared with the server: it answers nothing any more
static int reads_hang;

static void answer(int fuse, uint64_t unique, int error, const void *data, size_t size)
{
	static char buffer[LARGEST + 4096];
	struct fuse_out_header head = {
		.len = sizeof(head) + size, .error = error, .unique = unique};

	memcpy(buffer, &head, sizeof(head));
	if (size)
		memcpy(buffer + sizeof(head), data, size);
	if (write(fuse, buffer, head.len) < 0 && errno != ENOENT)
		_exit(3);
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr a = {.ino = node, .nlink = 1, .blksize = 4096};

	a.mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0755;
	a.size = node == ROOT ? 0 : length;
	return a;
}

static void serve_one(int fuse, struct fuse_in_header *in, void *arg)
{
	struct fuse_init_out init = {
		.major = 7, .minor = 31, .max_write = 4096, .max_readahead = 65536};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
	struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	struct fuse_open_out open = {.open_flags = FOPEN_KEEP_CACHE};
	struct fuse_read_in *read = arg;
	size_t left;

	switch (in->opcode) {
	case FUSE_INIT:
		answer(fuse, in->unique, 0, &init, sizeof(init));
		return;
	case FUSE_LOOKUP:
		answer(fuse, in->unique, 0, &entry, sizeof(entry));
		return;
	case FUSE_GETATTR:
		answer(fuse, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(fuse, in->unique, 0, &open, sizeof(open));
		return;
	case FUSE_READ:
		if (reads_hang)
			return;
		left = read->offset < length ? length - read->offset : 0;
		answer(fuse, in->unique, 0, content + read->offset,
		       left < read->size ? left : read->size);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_ACCESS:
		answer(fuse, in->unique, 0, 0, 0);
		return;
	}
	answer(fuse, in->unique, -ENOSYS, 0, 0);
}

static void serve(int fuse)
{
	static char request[LARGEST];

	for (;;) {
		struct fuse_in_header *in = (void *)request;
		ssize_t n = read(fuse, request, sizeof(request));

		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(*in))
			_exit(0);
		if (!*silent)
			serve_one(fuse, in, in + 1);
	}
}

/* Mounts the file system. A child answers, so that it needs no lock of this process. */
static void mount_at(const char *dir)
{
	char options[128];
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	pid_t parent = getpid();

	if (fuse < 0 || unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0)) {
		perror("stuck: preparing a mount");
		exit(1);
	}
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fuse);
	if (mount("stuck", dir, "fuse.stuck", MS_NODEV | MS_NOSUID, options)) {
		perror("stuck: mounting");
		exit(1);
	}
	if (fork() == 0) {
		prctl(PR_SET_NAME, "stuckserver");
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			serve(fuse);
		_exit(0);
	}
	close(fuse);
}

static void load(const char *file)
{
	int f = open(file, O_RDONLY);
	struct stat info;

	if (f < 0 || fstat(f, &info) || read(f, content, LARGEST) != info.st_size) {
		perror("stuck: reading its own file");
		exit(1);
	}
	length = info.st_size;
	close(f);
}

static char *page;

static void *hold(void *unused)
{
	char byte;
	int memory = open("/proc/self/mem", O_RDONLY);

	if (pread(memory, &byte, 1, (off_t)page) < 0) // does not return
		perror("stuck: reading its own memory");
	return unused;
}

static void *ask(void *unused)
{
	usleep(400000); // the other thread must have the lock
	mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // does not return
	return unused;
}

int main(int argc, char **argv)
{
	static char path[4096];
	pthread_t thread;
	int f;

	if (argc == 2 && !strcmp(argv[1], "wait")) {
		printf("ready\n");
		fflush(stdout);
		pause();
	}
	if (argc < 3)
		return 2;
	content = mmap(0, LARGEST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	silent = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	load("/proc/self/exe");
	reads_hang = strcmp(argv[1], "exe");
	mount_at(argv[2]);
	snprintf(path, sizeof(path), "%s/%s", argv[2], argc > 3 ? argv[3] : "file");

	if (!strcmp(argv[1], "exe")) {
		int ends[2];
		char byte;

		if (pipe(ends))
			return 1;
		if (fork() == 0) {
			dup2(ends[1], 1);
			close(ends[1]);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execl(path, path, "wait", (char *)0);
			perror("stuck: executing");
			_exit(1);
		}
		if (read(ends[0], &byte, 1) != 1)
			return 1;
		*silent = 1;
		printf("ready\n");
		fflush(stdout);
		wait(0);
		return 0;
	}
	f = open(path, O_RDONLY);
	page = mmap(0, 4096, PROT_READ, MAP_PRIVATE, f, 0);
	if (f < 0 || page == MAP_FAILED) {
		perror("stuck: mapping the file");
		return 1;
	}
	if (!strcmp(argv[1], "lock")) {
		// A new thread needs memory, so the one that holds the lock comes last.
		if (pthread_create(&thread, 0, ask, 0) || pthread_create(&thread, 0, hold, 0))
			return 1;
		usleep(600000);
	}
	write(1, "ready\n", 6);
	for (;;)
		pause();
}

// SPDX-License-Identifier: Apache-2.0
// A process that has mapped DIR/lib/libsgx_urts.so, a library of a runtime, and in whose mount
// namespace this path is now something else: "impostor KIND DIR" with the KIND fifo, device, link,
// middle (a link in the middle of the path), other (another regular file), or same (nothing is
// changed). It prints "ready", and "opened" whenever somebody opens what is there now.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	static char lib[4096], elsewhere[4096], file[8192], victim[8192], events[4096];
	const char *kind = argv[1], *watched = file;
	int f, events_of;

	if (argc < 3)
		return 2;
	snprintf(lib, sizeof(lib), "%s/lib", argv[2]);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", argv[2]);
	snprintf(file, sizeof(file), "%s/libsgx_urts.so", lib);
	snprintf(victim, sizeof(victim), "%s/libsgx_urts.so", elsewhere);
	f = open(file, O_RDONLY);
	if (f < 0 || mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0) == MAP_FAILED)
		return fail("impostor: mapping the library");
	close(f);
	if (unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0))
		return fail("impostor: preparing a mount");
	if (!strcmp(kind, "middle")) {
		// The directory above is replaced, and "lib" in it becomes a link.
		int keep = open(elsewhere, O_PATH);
		char fd[64];

		if (mount("none", argv[2], "tmpfs", 0, 0) || mkdir(elsewhere, 0755))
			return fail("impostor: mounting");
		snprintf(fd, sizeof(fd), "/proc/self/fd/%d", keep);
		if (mount(fd, elsewhere, 0, MS_BIND, 0) || symlink(elsewhere, lib))
			return fail("impostor: linking");
		watched = victim;
	} else if (strcmp(kind, "same")) {
		if (mount("none", lib, "tmpfs", 0, 0))
			return fail("impostor: mounting");
		if (!strcmp(kind, "fifo") && mkfifo(file, 0666))
			return fail("impostor: creating a FIFO");
		if (!strcmp(kind, "device") && mknod(file, S_IFCHR | 0666, makedev(1, 3)))
			return fail("impostor: creating a device");
		if (!strcmp(kind, "link") && symlink(victim, file))
			return fail("impostor: linking");
		if (!strcmp(kind, "link"))
			watched = victim;
		if (!strcmp(kind, "other")) {
			f = open(file, O_WRONLY | O_CREAT, 0755);
			if (f < 0 || write(f, "\177ELF", 4) != 4 || close(f))
				return fail("impostor: writing another file");
		}
	}
	events_of = inotify_init1(IN_CLOEXEC);
	if (inotify_add_watch(events_of, watched, IN_OPEN) < 0)
		return fail("impostor: watching");
	printf("ready\n");
	fflush(stdout);
	while (read(events_of, events, sizeof(events)) > 0) {
		printf("opened\n");
		fflush(stdout);
	}
	return 0;
}

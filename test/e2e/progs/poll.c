// SPDX-License-Identifier: Apache-2.0

// Polls for events repeatedly, without waiting and without a result, until it is killed.
#include <stdio.h>
#include <sys/epoll.h>

int main(void)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	if (fd < 0) {
		perror("epoll_create1");
		return 1;
	}
	while (epoll_wait(fd, &event, 1, 0) == 0)
		;
	perror("epoll_wait");
	return 1;
}

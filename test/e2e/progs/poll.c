// SPDX-License-Identifier: Apache-2.0
// poll: asks an epoll again and again, without waiting, whether anything has come in, and nothing has, until the end
// of the input (a signal ends it too: it looks at the input once in a while).
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

int main(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	int silent[2], epoll = epoll_create1(0);

	if (epoll < 0 || pipe(silent) || epoll_ctl(epoll, EPOLL_CTL_ADD, silent[0], &event))
		return 1;
	for (unsigned int i = 1;; i++) {
		epoll_wait(epoll, &event, 1, 0);
		if (i % 100000 == 0 && poll(&input, 1, 0) > 0)
			return 0;
	}
}

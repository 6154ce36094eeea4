// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// surviveHangup keeps SIGHUP, the usual signal to read configuration again, from ending a service. The kernel's default
// would end it where nothing else handles the signal: in an agent, and in a server that starts or stops. Other commands
// end with their terminal.
func surviveHangup(args []string) {
	if len(args) > 0 && slices.Contains([]string{"up", upAgent, upServer, "agent", "server"}, args[0]) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // never stopped
	}
}

// SPDX-License-Identifier: Apache-2.0

// Command testbed builds and boots a virtual SGX machine. It uses the unmodified driver of a stock kernel, and a
// module emulates the EPC and the SGX instructions. It is for tests and demonstrations only:
// nothing in it is secret, and its timing is not realistic.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

const usage = `usage: testbed build [-kernel VERSION]          build the module, the enclaves and the guest
       testbed run [options] -- CMD [ARG...]  boot the virtual SGX machine and run a command in it
"testbed run -h" lists the options.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	status, err := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
		status = 125 // a failure of the machine itself, as in podman run
	}
	os.Exit(status)
}

func run(ctx context.Context, stdout, stderr io.Writer, args []string) (int, error) {
	if len(args) > 0 {
		switch args[0] {
		case "build":
			return 0, buildCommand(ctx, stderr, args[1:])
		case "run":
			return runCommand(ctx, stdout, stderr, args[1:])
		}
	}
	fmt.Fprint(stderr, usage)
	return 0, errors.New("no command")
}

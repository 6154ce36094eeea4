// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/teescope/teescope/internal/cli/demo"
)

func demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show teescope on a virtual machine with a TEE; no TEE hardware is needed",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(demoSGXCommand(), demoCVMCommand())
	return cmd
}

func demoSGXCommand() *cobra.Command {
	var o demo.Options
	var quiet bool
	cmd := &cobra.Command{
		Use:   "sgx [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Boot a virtual SGX machine with two slow enclaves or your own program, and show the page on them",
		Long: "Boots a stock Debian kernel in QEMU. The kernel's unmodified SGX driver runs two emulated enclaves: the working\n" +
			"set of one does not fit into the enclave memory, and the other makes an OCALL for each piece of a request.\n" +
			"teescope runs beside them, and its page opens on this machine. Nothing in the virtual machine is secret, and its\n" +
			"timing is not realistic.\n\n" +
			"With a command, this program runs in the machine instead, for example one with an enclave of its own. It is a file\n" +
			"of this machine, copied with the libraries that it is linked to, or a program of the virtual machine. It runs in /job,\n" +
			"where --in copies further files to, such as the signed enclave. \"teescope record --in-testbed\" records it.\n\n" +
			"It needs a clone of the repository, qemu-system-x86, gcc and make. The first time it downloads 210 MB.",
		Example: "  teescope demo sgx\n" +
			"  teescope demo sgx --kernel 6.1 --listen 127.0.0.1:9800 --for 5m\n" +
			"  teescope demo sgx --in enclave.signed.so -- ./app 1000",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Command = args
			return show(cmd, o, quiet, demo.SGX)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are its own
	f.StringArrayVar(&o.Bring, "in", nil, "with a command: copy this `file` or folder into the machine, HOST[:GUEST], by default to /job; may be repeated")
	demoFlags(f, &o, &quiet)
	return cmd
}

func demoCVMCommand() *cobra.Command {
	var o demo.Options
	var quiet bool
	cmd := &cobra.Command{
		Use:   "cvm",
		Short: "Boot a virtual machine with full bounce buffers and one in it with an exit storm, and show the page on it",
		Long: "Boots a stock Debian kernel in QEMU, which must copy all data of its disk through bounce buffers (swiotlb=force), as\n" +
			"in a confidential virtual machine. Again and again, programs read the disk until the buffers are full, and recover.\n" +
			"Two tiny virtual machines run in it, by the kernel's unmodified KVM: \"storm\" leaves its guest thousands of times a\n" +
			"second, \"idle\" waits. teescope runs beside them, and its page opens on this machine. No memory is encrypted, and the\n" +
			"timing is not realistic.\n\n" +
			"It needs a clone of the repository, qemu-system-x86, gcc and make. The first time it downloads 210 MB.",
		Example: "  teescope demo cvm\n" +
			"  teescope demo cvm --kernel 6.1 --listen 127.0.0.1:9800 --for 5m",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd, o, quiet, demo.CVM) },
	}
	demoFlags(cmd.Flags(), &o, &quiet)
	return cmd
}

// demoFlags adds the flags of all demonstrations.
func demoFlags(f *pflag.FlagSet, o *demo.Options, quiet *bool) {
	f.StringVar(&o.Source, "source", "", "source `directory` of teescope (default: the working directory or the nearest one above it)")
	f.StringVar(&o.Kernel, "kernel", demo.DefaultKernel, "kernel of the machine: 6.1 or 6.12")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:9750", "`address` of the page on this machine, on 127.0.0.1")
	f.DurationVar(&o.For, "for", 0, "stop after this time; 0 runs until Ctrl-C")
	f.BoolVar(quiet, "no-browser", false, "only print the address of the page")
}

// show runs a demonstration.
func show(cmd *cobra.Command, o demo.Options, quiet bool, run func(context.Context, demo.Options) error) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	o.Binary, o.Out, o.Err = binary, cmd.OutOrStdout(), cmd.ErrOrStderr()
	if !quiet {
		o.Open = demo.Browser
	}
	return run(cmd.Context(), o)
}

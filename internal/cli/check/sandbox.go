// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
)

// landlock and seccomp confine teescope after its start. It also runs without them.
func (o Options) landlock() Check {
	version, err := o.Landlock()
	if err != nil {
		return Check{
			Name: "landlock", Status: Missing, Detail: printable(err.Error()) + "; teescope server is less confined",
			Advice: "boot with landlock in the list lsm=, on a kernel built with CONFIG_SECURITY_LANDLOCK",
		}
	}
	return Check{Name: "landlock", Status: OK, Detail: fmt.Sprintf("version %d: confines teescope server to its data directory", version)}
}

func (o Options) seccomp() Check {
	if slices.Contains(strings.Fields(o.sysctl("kernel/seccomp/actions_avail")), "errno") {
		return Check{Name: "seccomp", Status: OK, Detail: "system calls that teescope does not need are refused"}
	}
	return Check{
		Name: "seccomp", Status: Missing, Detail: "the kernel cannot filter system calls: teescope is less confined",
		Advice: "run a kernel built with CONFIG_SECCOMP_FILTER",
	}
}

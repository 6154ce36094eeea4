// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/teescope/teescope/testbed/machine"
)

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }

func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// sizes is a list of MiB, comma-separated.
type sizes []int

func (s *sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*s)), " ", ","), "[]")
}

func (s *sizes) Set(text string) error {
	*s = nil
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of MiB", field)
		}
		*s = append(*s, n)
	}
	return nil
}

// forwards are ports: "9750" or "8080:9750".
type forwards []machine.Forward

func (f *forwards) String() string { return fmt.Sprint([]machine.Forward(*f)) }

func (f *forwards) Set(text string) error {
	host, guest, found := strings.Cut(text, ":")
	if !found {
		guest = host
	}
	h, err1 := strconv.ParseUint(host, 10, 16)
	g, err2 := strconv.ParseUint(guest, 10, 16)
	if err1 != nil || err2 != nil || h == 0 || g == 0 {
		return fmt.Errorf("%q is not PORT or HOST:GUEST", text)
	}
	*f = append(*f, machine.Forward{Host: int(h), Guest: int(g)})
	return nil
}

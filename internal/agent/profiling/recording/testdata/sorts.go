// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Each line of input is a number of milliseconds. It spends so much CPU time in generic functions, closures and interfaces of Go's
// library, in another goroutine, and prints a line.
package main

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"sort"
	"strconv"
	"syscall"
)

func used() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func work(seconds float64) (sum int) {
	random := rand.New(rand.NewSource(1))
	for until := used() + seconds; used() < until; {
		names := make([]string, 2000)
		for i := range names {
			names[i] = strconv.Itoa(random.Int())
		}
		sort.Sort(sort.Reverse(sort.StringSlice(names)))
		by := map[string]func(int) int{}
		for _, name := range names {
			by[name] = func(n int) int { return n + len(name) }
		}
		for _, name := range slices.SortedFunc(maps.Keys(by), func(a, b string) int { return len(a) - len(b) }) {
			sum += by[name](1)
		}
	}
	return sum
}

func main() {
	for {
		var milliseconds float64
		if _, err := fmt.Scan(&milliseconds); err != nil {
			return
		}
		done := make(chan int)
		go func() { done <- work(milliseconds / 1e3) }()
		fmt.Println(0, 0, 0, <-done%2)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/lib/clock"
)

// running is a server that answers requests.
type running struct {
	*child
	url   string
	ready time.Duration // time from start to the first answer
}

// startTeescope starts a subcommand and waits until it is ready.
func startTeescope(ctx context.Context, binary string, args ...string) (*running, error) {
	return startServer(ctx, "/-/ready", func(addr string) []string {
		return append(append([]string{binary}, args...), "--listen", addr)
	})
}

// startServer starts a program on a free port of this machine and waits until a path answers.
func startServer(ctx context.Context, path string, command func(addr string) []string) (*running, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	begin, args := time.Now(), command(addr)
	c, err := startOn(ctx, anyCore, args[0], args[1:]...)
	if err != nil {
		return nil, err
	}
	r := &running{child: c, url: "http://" + addr}
	if err := waitFor(ctx, r.url+path); err != nil {
		r.stop()
		return nil, fmt.Errorf("starting %s: %w\n%s", args[0], err, c.output())
	}
	r.ready = time.Since(begin)
	return r, nil
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// waitFor sends requests until a URL answers.
func waitFor(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		_, err := fetch(ctx, url)
		if err == nil {
			return nil
		}
		if clock.Sleep(ctx, 5*time.Millisecond) != nil {
			return fmt.Errorf("waiting for an answer: %w", err)
		}
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return body, err
}

// number returns the number that the first group of a pattern matches first.
func number(pattern string, text []byte) (float64, error) {
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %s in %.200q", pattern, text)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// sumOf adds up all numbers that the first group of a pattern matches. It returns 0 when nothing matches.
func sumOf(pattern string, text []byte) (float64, error) {
	var total float64
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

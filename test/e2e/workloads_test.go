// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func port(t *testing.T) string {
	t.Helper()
	_, p, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// redis starts a server without persistence and returns its port.
func redis(t *testing.T, program string, more ...string) string {
	t.Helper()
	p := port(t)
	args := []string{"--port", p, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir()}
	background(t, program, append(args, more...)...)
	eventually(t, testLimit, "redis to answer", func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:"+p)
		if err == nil {
			conn.Close()
		}
		return err
	})
	return p
}

// redisInfo reads one number of INFO.
func redisInfo(t *testing.T, port, key string) float64 {
	t.Helper()
	out := run(t, "redis-cli", "-p", port, "info")
	m := regexp.MustCompile(`(?m)^` + key + `:(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("redis INFO has no %s", key)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Without pipelining, Redis reads once and writes once for each command. Its own count is the true value.
func TestRedisUnderLoad(t *testing.T) {
	t.Setenv("MALLOC_ARENA_MAX", "1")
	background(t, copyTo(t, "/usr/bin/sleep", "e2esettings"), "600")
	// It has its own name, because the machine may already run Redis.
	p := redis(t, copyTo(t, "/usr/bin/redis-server", "e2eredis"))
	a := agent(t)
	of := func(s samples, syscall string) float64 {
		return s.sum("teescope_syscalls_total", "workload", "e2eredis", "syscall", syscall)
	}
	before, commandsBefore := a.scrape(t), redisInfo(t, p, "total_commands_processed")
	run(t, "redis-benchmark", "-p", p, "-t", "set,get", "-n", "100000", "-c", "20", "-q")
	after, commandsAfter := a.scrape(t), redisInfo(t, p, "total_commands_processed")

	if n := after.sum("teescope_workload_setting_info", "workload", "e2esettings", "setting", "MALLOC_ARENA_MAX", "value", "1"); n != 1 {
		t.Errorf("%v series have the environment variable, want 1", n)
	}
	if after.has("teescope_workload_settings", "workload", "e2eredis") { // Redis writes its title over them
		t.Error("the settings of Redis are known")
	}
	commands := commandsAfter - commandsBefore
	if commands < 200_000 {
		t.Fatalf("redis counted %v commands", commands)
	}
	reads, writes := of(after, "read")-of(before, "read"), of(after, "write")-of(before, "write")
	waits := of(after, "epoll_wait") - of(before, "epoll_wait")
	// Each closing connection costs a read, and the cron some.
	wantBetween(t, "reads", reads, commands*0.999, commands*1.01)
	wantBetween(t, "writes", writes, commands*0.999, commands*1.01)
	// 20 connections: one wait serves 1 to 20 of them.
	wantBetween(t, "waits", waits, commands/20, commands*1.01)

	wantExactly(t, "processes", after.sum("teescope_processes", "workload", "e2eredis"), 1)
	if cpu := delta(before, after, "teescope_cpu_seconds_total", "workload", "e2eredis"); cpu <= 0 {
		t.Errorf("redis used %v CPU seconds under load", cpu)
	}
	if rss := after.sum("teescope_resident_memory_bytes", "workload", "e2eredis"); rss < 1<<20 {
		t.Errorf("redis has %v bytes resident", rss)
	}
	if !after.has("teescope_workload_info", "workload", "e2eredis", "kind", "program", "tee", "none") {
		t.Error("no teescope_workload_info for e2eredis with kind=program and tee=none")
	}
}

// nginx starts a server of a page of six bytes under its own name, because the machine may already run nginx. It
// returns the page's address.
func nginx(t *testing.T, name string, settings ...string) (url string) {
	t.Helper()
	dir := t.TempDir()
	p := port(t)
	config := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	access_log off; client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	keepalive_requests 100000000; %[3]s
	server { listen 127.0.0.1:%[2]s; location / { return 200 "hello\n"; } }
}
`, dir, p, strings.Join(settings, " "))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	background(t, copyTo(t, "/usr/sbin/nginx", name), "-c", config, "-p", dir)
	url = "http://127.0.0.1:" + p + "/"
	eventually(t, testLimit, "nginx to answer", func() error { _, err := get(url); return err })
	return url
}

// nginx answers each request with one writev; wrk counts the answers.
func TestNginxUnderLoad(t *testing.T) {
	url := nginx(t, "e2enginx")
	a := agent(t)
	of := func(s samples, syscall string) float64 {
		return s.sum("teescope_syscalls_total", "workload", "e2enginx", "syscall", syscall)
	}
	before := a.scrape(t)
	const connections = 16
	out := run(t, "wrk", "-t", "1", "-c", strconv.Itoa(connections), "-d", "3s", url)
	after := a.scrape(t)
	m := regexp.MustCompile(`(\d+) requests in`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("wrk printed no count:\n%s", out)
	}
	requests, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	if requests < 10_000 {
		t.Fatalf("wrk made only %v requests", requests)
	}
	// wrk does not count requests in progress when it stops: at most one per connection.
	wantBetween(t, "writev of nginx", of(after, "writev")-of(before, "writev"), requests, requests+2*connections)
	wantBetween(t, "recvfrom of nginx", of(after, "recvfrom")-of(before, "recvfrom"), requests, 2*requests+4*connections)
	wantExactly(t, "processes of nginx", after.sum("teescope_processes", "workload", "e2enginx"), 2)
}

// A shell script runs many short programs. Each is counted under its own name.
func TestShellScriptOfManyProcesses(t *testing.T) {
	a := agent(t)
	script := copyTo(t, "progs/pipeline.sh", "e2epipeline.sh")
	const n = 200
	run(t, script, strconv.Itoa(n), copyTo(t, "/usr/bin/seq", "e2eseq"), copyTo(t, "/usr/bin/wc", "e2ewc"))
	s := a.scrape(t)
	for _, name := range []string{"e2eseq", "e2ewc"} {
		wantExactly(t, "execs of "+name, s.sum("teescope_execs_total", "workload", name), n)
		wantExactly(t, "exits of "+name, s.sum("teescope_exits_total", "workload", name), n)
		wantExactly(t, "exit_group of "+name, s.sum("teescope_syscalls_total", "workload", name, "syscall", "exit_group"), n)
	}
	wantExactly(t, "writes of e2eseq", s.sum("teescope_syscalls_total", "workload", "e2eseq", "syscall", "write"), n)
	// The shell's workload has the name of the script or of the shell. Its forks are exact in both.
	var forks float64
	for _, name := range []string{"e2epipeline.sh", "sh", "dash"} {
		forks += s.sum("teescope_forks_total", "workload", name)
	}
	wantBetween(t, "forks of the shell", forks, 2*n, 2*n*1.05)
	if !strings.Contains(fmt.Sprint(s.by("workload", "teescope_workload_info")), "e2eseq") {
		t.Error("e2eseq has no teescope_workload_info")
	}
}

// The main purpose: with one command and a real Redis under load, PromQL shows its system calls by name within seconds.
func TestTheMainJob(t *testing.T) {
	s := start(t, "up", "--data-dir", t.TempDir())
	p := redis(t, "redis-server")
	background(t, "redis-benchmark", "-p", p, "-t", "get", "-n", "100000000", "-c", "20", "-q")
	const expr = `topk(3, sum by (syscall) (rate(teescope_syscalls_total{workload="redis-server"}[30s]))) > 100`
	eventually(t, testLimit, "a rate of redis", func() error {
		got, err := query("http://"+s.addr, expr, time.Now())
		if err == nil && (got[`{syscall="read"}`] == 0 || got[`{syscall="write"}`] == 0) {
			err = fmt.Errorf("%s gives %v", expr, got)
		}
		return err
	})
}

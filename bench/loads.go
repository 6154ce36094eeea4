// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/clock"
)

// A load is a server, a client that runs until it is stopped, and a count of operations that does not come from
// teescope.
type load struct {
	name   string
	is     string                                       // description for the report
	server func(dir, port string) ([]string, error)     // returns the command, after creating what it needs
	ready  func(ctx context.Context, port string) error // nil: the server is ready when count answers
	client func(port string) []string                   // nil: the server makes its own load
	count  func(ctx context.Context, u *underLoad) (float64, error)
}

func loads() []load {
	return []load{
		{name: "redis", is: "Redis, GET", server: redisServer, client: redisClient("get"), count: redisCommands},
		{name: "redis-p16", is: "Redis, GET, 16 in a pipeline", server: redisServer, client: redisClient("get", "-P", "16"), count: redisCommands},
		{name: "redis-set", is: "Redis, SET", server: redisServer, client: redisClient("set"), count: redisCommands},
		{name: "redis-set-p16", is: "Redis, SET, 16 in a pipeline", server: redisServer, client: redisClient("set", "-P", "16"), count: redisCommands},
		{name: "nginx", is: "nginx, a page of 612 bytes", server: nginxServer, client: nginxClient, count: nginxRequests},
		{name: "pgbench", is: "PostgreSQL, pgbench -S", server: postgresServer, ready: pgbenchTables, client: pgbenchClient, count: pgbenchTransactions},
		{name: "getppid", is: "a loop of the cheapest system call", server: loopServer(strconv.Itoa(unix.SYS_GETPPID)), count: loopDone},
		{name: "threads", is: "threads created and joined", server: loopServer("threads"), count: loopDone},
	}
}

// defaultLoads answers a user's question within minutes.
const defaultLoads = "redis,redis-p16,nginx"

func loadNames() []string {
	var names []string
	for _, l := range loads() {
		names = append(names, l.name)
	}
	return names
}

func loadNamed(name string) load {
	for _, l := range loads() {
		if l.name == name {
			return l
		}
	}
	return load{}
}

func redisServer(dir, port string) ([]string, error) {
	return []string{"redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}, nil
}

func redisClient(command string, more ...string) func(string) []string {
	return func(port string) []string {
		// The number of requests is the largest that it can count. bench stops it.
		return append([]string{"redis-benchmark", "-p", port, "-t", command, "-c", "50", "-n", "2000000000", "-q"}, more...)
	}
}

// redisCommands reads total_commands_processed from INFO.
func redisCommands(ctx context.Context, u *underLoad) (float64, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", "127.0.0.1:"+u.port)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(conn, "INFO stats\r\nQUIT\r\n"); err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return 0, err
	}
	return number(`total_commands_processed:(\d+)`, answer)
}

// nginxServer serves a page of 612 bytes, the size of nginx' own welcome page, with one worker.
func nginxServer(dir, port string) ([]string, error) {
	config := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
	access_log off; keepalive_requests 4000000000;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server {
		listen 127.0.0.1:%[2]s;
		location / { root %[1]s/html; }
		location /status { stub_status; }
	}
}
`, dir, port)
	html := filepath.Join(dir, "html")
	if err := os.MkdirAll(html, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(html, "index.html"), []byte(strings.Repeat("x", 611)+"\n"), 0o644); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return []string{"/usr/sbin/nginx", "-c", file, "-p", dir}, nil
}

func nginxClient(port string) []string {
	return []string{"wrk", "-t", "1", "-c", "50", "-d", "36000s", "http://127.0.0.1:" + port + "/"}
}

// nginxRequests reads the third number of the counter line of stub_status. The line is checked first, because an error
// page would cost less than the page.
func nginxRequests(ctx context.Context, u *underLoad) (float64, error) {
	if _, err := fetch(ctx, "http://127.0.0.1:"+u.port+"/"); err != nil {
		return 0, err
	}
	body, err := fetch(ctx, "http://127.0.0.1:"+u.port+"/status")
	if err != nil {
		return 0, err
	}
	return number(`(?m)^ \d+ \d+ (\d+)`, body)
}

// asPostgres runs a command as the package's user, because PostgreSQL refuses to run as root.
func asPostgres(args ...string) []string {
	return append([]string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"}, args...)
}

// postgresServer creates a new cluster, which does not survive a crash and listens on no network.
func postgresServer(dir, port string) ([]string, error) {
	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(programs) == 0 {
		return nil, errors.New("no PostgreSQL in /usr/lib/postgresql: install the package postgresql, or leave the load out of -loads")
	}
	bin, data := programs[len(programs)-1], filepath.Join(dir, "data")
	owned := exec.Command("install", "-d", "-o", "postgres", "-g", "postgres", dir)
	initdb := exec.Command("setpriv", asPostgres(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "--no-sync")[1:]...)
	initdb.Dir = "/"
	for _, cmd := range []*exec.Cmd{owned, initdb} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("making a cluster: %s: %w\n%s", cmd, err, out)
		}
	}
	return asPostgres(filepath.Join(bin, "postgres"), "-D", data, "-p", port, "-k", "", "-h", "127.0.0.1",
		"-c", "fsync=off", "-c", "autovacuum=off", "-c", "max_parallel_workers=0"), nil
}

var postgresAt = []string{"-h", "127.0.0.1", "-U", "postgres", "-p"}

// pgbenchTables waits for the server and inserts a million rows.
func pgbenchTables(ctx context.Context, port string) error {
	out, err := exec.CommandContext(ctx, "pgbench", append(postgresAt, port, "-i", "-q", "-s", "10", "postgres")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgbench -i: %w\n%s", err, out)
	}
	return nil
}

func pgbenchClient(port string) []string {
	return append(append([]string{"pgbench"}, postgresAt...), port,
		"-S", "-M", "prepared", "-c", "8", "-j", "1", "-T", "36000", "-P", "1", "--progress-timestamp", "postgres")
}

// pgbenchTransactions waits for pgbench's next report, which is made every second. It adds up all reports: the rate
// times the interval of each.
func pgbenchTransactions(ctx context.Context, u *underLoad) (float64, error) {
	before := len(pgbenchReports(u.client.output()))
	for {
		if reports := pgbenchReports(u.client.output()); len(reports) > max(before, 1) {
			return transactions(reports), nil
		}
		select {
		case <-u.client.done:
			return 0, errors.New("pgbench has ended:\n" + u.client.output())
		default:
		}
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// pgbenchReport is a line of progress: the time in seconds, and the transactions per second since the previous line.
type pgbenchReport struct{ at, rate float64 }

func pgbenchReports(output string) []pgbenchReport {
	var all []pgbenchReport
	for _, m := range regexp.MustCompile(`(?m)^progress: (\S+) s, (\S+) tps`).FindAllStringSubmatch(output, -1) {
		at, errAt := strconv.ParseFloat(m[1], 64)
		rate, errRate := strconv.ParseFloat(m[2], 64)
		if errors.Join(errAt, errRate) == nil {
			all = append(all, pgbenchReport{at, rate})
		}
	}
	return all
}

func transactions(reports []pgbenchReport) float64 {
	var total float64
	for i := 1; i < len(reports); i++ {
		total += reports[i].rate * (reports[i].at - reports[i-1].at)
	}
	return total
}

//go:embed progs/loop.c
var loopSource []byte

// loopServer compiles progs/loop.c and starts it immediately.
func loopServer(what string) func(dir, port string) ([]string, error) {
	return func(dir, _ string) ([]string, error) {
		program := filepath.Join(dir, "benchloop")
		if err := compileLoop(program); err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "words")
		return []string{program, file, what}, writeWords(file, true)
	}
}

// compileLoop compiles progs/loop.c.
func compileLoop(program string) error { return compile(program, loopSource) }

// compile compiles a program from its source.
func compile(program string, text []byte) error {
	source := program + ".c"
	if err := os.WriteFile(source, text, 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("cc", "-O2", "-pthread", "-o", program, source).CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", filepath.Base(source), err, out)
	}
	return nil
}

// writeWords writes the two words that the program maps: a count of zero, and whether to begin.
func writeWords(file string, begin bool) error {
	var words [16]byte
	if begin {
		words[8] = 1
	}
	return os.WriteFile(file, words[:], 0o644)
}

func loopDone(_ context.Context, u *underLoad) (float64, error) {
	return wordsDone(filepath.Join(u.dir, "words"))
}

func wordsDone(file string) (float64, error) {
	words, err := os.ReadFile(file)
	if err != nil || len(words) < 16 {
		return 0, fmt.Errorf("reading the count of the loop, %d bytes: %w", len(words), err)
	}
	return float64(binary.NativeEndian.Uint64(words)), nil
}

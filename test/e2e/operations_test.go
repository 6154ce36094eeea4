// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redisNumber asks Redis itself for one number of a section of INFO, over a connection of its own.
func redisNumber(port, section, key string) (float64, error) {
	conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Minute)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(conn, "INFO %s\r\nQUIT\r\n", section); err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(io.LimitReader(conn, 1<<20)); lines.Scan(); {
		if text, found := strings.CutPrefix(strings.TrimSpace(lines.Text()), key+":"); found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("INFO %s has no %s", section, key)
}

// redisExporter serves what redis_exporter makes of INFO. Its label workload is that of another program.
func redisExporter(t *testing.T, port string) *url.URL {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n, err := redisNumber(port, "stats", "total_commands_processed")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "# TYPE redis_commands_processed_total counter\nredis_commands_processed_total{workload=\"e2eopsload\"} %.0f\n", n)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// cpuOf returns the CPU time of a process in seconds (proc(5): utime and stime, in ticks of 10 ms).
func cpuOf(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	sum := 0.0
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n / 100
	}
	return sum
}

// unitCosts is the answer of /api/operations.
type unitCosts struct {
	Operations []struct {
		Workload, Instance, State, Because, Counter string
		Guessed                                     bool
		Per                                         *unitCost `json:"per_second"`
		Costs                                       []unitCost
	}
}

type unitCost struct {
	Name, Unit, Query string
	Value, Low, High  float64
	N                 int
}

// TestCostOfAnOperation: Redis and an exporter count commands, and the agent counts what they cost. perf counts the system
// calls, /proc the CPU time, and INFO the commands, in about the same 20 s.
//
// False alarms: below 1e-6. The costs are ratios of two counts of a steady load. In 6 rounds on a busy machine (load 15 to 38 on 2
// processors) those of system calls differed by at most 0.7 %, and in 15 rounds those of CPU time by at most 2.9 %, with a standard
// deviation of 1.2 %. More than 10 % is eight of them, in each of four rounds. The throughput is of windows that differ by some
// seconds, and wanders with the machine, by at most 14 % in 15 rounds. It must be within a factor of two.
func TestCostOfAnOperation(t *testing.T) {
	const name, seconds = "e2eops", 20
	port := redis(t, copyTo(t, "/usr/bin/redis-server", name))
	u := redisExporter(t, port)
	s := start(t, "up", "--data-dir", t.TempDir(), "--interval", "1s", "--analysis.window", strconv.Itoa(seconds)+"s", "--rules.default=false",
		"--scrape", "redis="+u.String()+" workload="+name)
	background(t, copyTo(t, "/usr/bin/redis-benchmark", "e2eopsload"), "-p", port, "-t", "set,get", "-n", "2000000000", "-c", "20", "-q")
	time.Sleep(5 * time.Second) // the load is steady
	pid := pidOf(t, name)
	inOneOf(t, 4, func() error {
		// Within perf's own time, Redis is asked at the start and the end.
		ask := "redis-cli -p " + port + " info stats | grep total_commands"
		perf := tracer(t, "perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", strconv.Itoa(pid), "sh", "-c", ask+"; sleep "+strconv.Itoa(seconds)+"; "+ask)
		commands, err := redisNumber(port, "stats", "total_commands_processed")
		if err != nil {
			return err
		}
		cpu, began := cpuOf(t, pid), time.Now()
		calls := counted(t, perf)
		after, err := redisNumber(port, "stats", "total_commands_processed")
		if err != nil {
			return err
		}
		cpu, commands = cpuOf(t, pid)-cpu, after-commands
		took := time.Since(began).Seconds()
		asked := regexp.MustCompile(`total_commands_processed:(\d+)`).FindAllStringSubmatch(perf.log.String(), -1)
		if len(asked) != 2 {
			return fmt.Errorf("perf: %s", perf.log.String())
		}
		first, _ := strconv.ParseFloat(asked[0][1], 64)
		last, _ := strconv.ParseFloat(asked[1][1], 64)
		var answer unitCosts
		text, err := get("http://" + s.addr + "/api/operations?workload=" + name + "&at=" + strconv.FormatInt(time.Now().Unix(), 10))
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
		if err != nil || len(answer.Operations) != 1 || answer.Operations[0].Per == nil {
			return fmt.Errorf("%v: %s", err, text)
		}
		o := answer.Operations[0]
		if o.State != "counted" || !o.Guessed || o.Counter != "redis_commands_processed_total" {
			return fmt.Errorf("%+v", o)
		}
		costs := map[string]unitCost{"commands per second": *o.Per}
		for _, c := range o.Costs {
			costs[c.Name] = c
		}
		var wrong error
		for what, want := range map[string]float64{"system calls": calls / (last - first), "CPU time": cpu / commands, "commands per second": commands / took} {
			c := costs[what]
			t.Logf("%s: %v (%v to %v), n=%d; counted by others: %v (%+.2f %%)", what, c.Value, c.Low, c.High, c.N, want, 100*(c.Value/want-1))
			most := math.Log(1.1)
			if what == "commands per second" {
				most = math.Log(2)
			}
			if !(math.Abs(math.Log(c.Value/want)) <= most) || c.N < seconds*3/4 {
				wrong = fmt.Errorf("%s: %+v, counted by others: %v", what, c, want)
			}
		}
		return wrong
	})
	// What the exporter says of the workload has no effect.
	if text, err := get("http://" + s.addr + "/api/operations?workload=e2eopsload"); err != nil || !strings.Contains(text, `"operations":[]`) {
		t.Errorf("the load has the operations that the exporter claims: %v %s", err, text)
	}
	// A hundred commands cost a hundred times as much, and the report for people says the same.
	if text, err := get("http://" + s.addr + "/api/operations?per=100&workload=" + name); err != nil || !strings.Contains(text, `"per":100`) {
		t.Errorf("per 100: %v %s", err, text)
	}
	if text := run(t, binary, "analyze", "--server", "http://"+s.addr, "--window", "20s", "--workload", name); !strings.Contains(text, "What one operation costs\n"+name) ||
		!strings.Contains(text, "system calls: ") || !strings.Contains(text, "redis_commands_processed_total, which is guessed") {
		t.Errorf("analyze:\n%s", text)
	}
}

// pidOf returns the process of that name.
func pidOf(t *testing.T, name string) int {
	t.Helper()
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range names {
		if comm, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(comm)) == name {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				return pid
			}
		}
	}
	t.Fatalf("no process is called %s", name)
	return 0
}

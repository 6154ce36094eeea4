// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	attackLimit = 256 * mib
	// attackAddresses is the address space of a process under attack. A process that requests more ends, and not another
	// program of this machine. Go reserves much more than it uses.
	attackAddresses = 6 << 30
	attackSeries    = 2000
)

// group lists the process of a teescope and its children, which do the work of an up.
func (s *teescope) group() []int {
	own := s.cmd.Process.Pid
	all := []int{own}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(after); len(fields) > 1 && fields[1] == strconv.Itoa(own) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
				all = append(all, pid)
			}
		}
	}
	slices.Sort(all)
	return all
}

// peak returns the most memory that any process of a teescope has had in use, in bytes. Pages of files do not count: the
// kernel takes them back when it needs memory, and the limit does not include them. The fewest pages of files that were
// seen are subtracted, so the result is an upper limit.
func (s *teescope) peak(t *testing.T) float64 {
	t.Helper()
	most := 0.0
	for _, pid := range s.group() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended, which the caller detects
		}
		var resident, files float64
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(line, ":")
			if name != "VmHWM" && name != "RssFile" {
				continue
			}
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			if err != nil {
				t.Fatal(err)
			}
			if name == "VmHWM" {
				resident = kib * 1024
			} else {
				files = kib * 1024
			}
		}
		if least, seen := s.files[pid]; !seen || files < least {
			if s.files == nil {
				s.files = map[int]float64{}
			}
			s.files[pid] = files
		}
		most = max(most, resident-s.files[pid])
	}
	return most
}

// withAddressSpace limits the address space of teescopes that are started until the result is called. The limit is set before
// the start, because a server changes its user.
func withAddressSpace(t *testing.T, bytes int) (end func()) {
	t.Helper()
	limited, unlimited := filepath.Join(t.TempDir(), "teescope"), binary
	script := fmt.Sprintf("#!/bin/sh\nulimit -v %d && exec %s \"$@\"\n", bytes>>10, binary)
	if err := os.WriteFile(limited, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	binary = limited
	return func() { binary = unlimited }
}

// attacked starts a server or an up with series of an application, and with a limit of memory. Its processes cannot take
// the memory of this machine.
func attacked(t *testing.T, command string, args ...string) *teescope {
	t.Helper()
	target := httptest.NewServer(body(func(w io.Writer) {
		for i := range attackSeries {
			fmt.Fprintf(w, "attack{i=\"%d\",group=\"%d\",text=\"%s\"} %d\n", i, i%10, strings.Repeat("x", 100), i)
		}
	}))
	t.Cleanup(target.Close)
	all := []string{"--data-dir", t.TempDir(), "--interval", "1s", "--memory.limit", "256MiB", "--scrape", "attack=" + target.URL}
	defer withAddressSpace(t, attackAddresses)()
	s := start(t, command, append(all, args...)...)
	eventually(t, testLimit, "the series of the application", func() error {
		got, err := query("http://"+s.addr, `count(attack)`, time.Now())
		if err == nil && got["{}"] != attackSeries {
			err = fmt.Errorf("count(attack) is %v", got)
		}
		return err
	})
	return s
}

// attack is a request that takes far more than the limit of memory if it is executed.
type attack struct {
	name, path string
	values     url.Values
	want       string // a part of the reason why it is refused; empty if it is answered
}

func instantAttack(name, expr, want string) attack {
	return attack{name, "/api/v1/query", url.Values{"query": {expr}}, want}
}

// textAttack sends a text to an endpoint that parses it.
func textAttack(endpoint, text, want string) attack {
	return attack{fmt.Sprintf("%s of %.10s", endpoint, text), "/api/v1/" + endpoint, url.Values{"query": {text}}, want}
}

func rangeAttack(name, expr, want string) attack {
	end := time.Now().Unix() + 240 // the newest sample is within two steps of it
	return attack{name, "/api/v1/query_range", url.Values{
		"query": {expr}, "start": {strconv.FormatInt(end-10_000*120, 10)}, "end": {strconv.FormatInt(end, 10)}, "step": {"120"},
	}, want}
}

func attacks() []attack {
	joins := func(n int) string {
		return strings.Repeat("label_join(", n) + "attack" + strings.Repeat(`,"a","","text","a","a","a","a")`, n)
	}
	thousands, hundred := url.Values{}, url.Values{}
	for i := range 3000 {
		thousands.Add("match[]", "up")
		if i < 100 {
			hundred.Add("match[]", fmt.Sprintf(`attack{i!="%d"}`, i))
		}
	}
	return []attack{
		instantAttack("a subquery of a year", `up[365d:1ms]`, "use a larger step than 1ms"),
		instantAttack("a subquery of ten days", `up[10d:1ms]`, "use a larger step than 1ms"),
		instantAttack("a subquery within a function", `count_over_time(up[10d:1ms])`, "use a larger step than 1ms"),
		instantAttack("the default step", `count_over_time(up[290y:])`, "use a larger step than"),
		instantAttack("nested subqueries", `max_over_time(max_over_time(up[1h:10ms])[10d:1h])`, "use a larger step than 10ms"),
		instantAttack("a step of zero", `up[1:0.0001]`, "must be at least 1ms"),
		instantAttack("many subqueries", strings.Repeat(`max_over_time(up[9d:1s]) + `, 9)+"1", "all subqueries of a query together"),
		rangeAttack("a subquery of a range", `max_over_time(up[1d:1s])`, "use a larger step than 1s"),
		rangeAttack("windows without end", `quantile_over_time(0.5, attack[15d])`, "use a shorter range, or fewer steps"),
		instantAttack("doubled labels", joins(40), "nest fewer of them"),
		instantAttack("long labels", joins(8), "may take"),
		instantAttack("long texts", `label_replace(attack, "a", "`+strings.Repeat("x", 15_000)+`$1$1$1", "text", "(.*)") * 0 + on(i) group_left(a) label_join(attack, "a", "`+strings.Repeat("y", 900)+`"`+strings.Repeat(`,"i"`, 90)+`)`, ""),
		instantAttack("topk by everything", `topk without () (1e9, attack)`, "topk by many labels"),
		rangeAttack("a series for each value", `count_values("v", attack + time())`, "avoid count_values"),
		rangeAttack("points for short series", `attack + 0 > 1`, "fewer points"),
		instantAttack("repetitions", `up{job=~"`+strings.Repeat(`((abcdefghij){100}){10}`, 100)+`"}`, "fewer or smaller repetitions"),
		instantAttack("repetitions in a function", `label_replace(up, "a", "", "job", "`+strings.Repeat(`((abcdefghij){100}){10}`, 100)+`")`, "fewer or smaller repetitions"),
		instantAttack("many selections", `count(attack)`+strings.Repeat(` + count({__name__=~".+"})`, 500), ""),
		instantAttack("deep nesting", strings.Repeat("abs(", 3000)+"up"+strings.Repeat(")", 3000), ""),
		{"series by thousands of selectors", "/api/v1/series", thousands, "the maximum is 100"},
		{"series by a hundred selectors", "/api/v1/series", hundred, "use narrower matchers"},
		{"labels by thousands of selectors", "/api/v1/labels", thousands, "the maximum is 100"},
		{"a selector with repetitions", "/api/v1/series", url.Values{"match[]": {`{i=~"` + strings.Repeat("((abcdefghij){100}){10}", 100) + `"}`}}, "fewer or smaller repetitions"},
		{"metadata", "/api/v1/metadata", url.Values{}, ""},
		textAttack("format_query", strings.Repeat("abs(", 3000)+"up"+strings.Repeat(")", 3000), "deep; the maximum is 100"),
		textAttack("format_query", "up"+strings.Repeat("+up", 950), "too long to format"),
		textAttack("parse_query", strings.Repeat("(", 4000)+"1"+strings.Repeat(")", 4000), "deep; the maximum is 100"),
		textAttack("parse_query", strings.Repeat("-", 16_000)+"1", "the maximum is 100"),
		textAttack("parse_query", strings.Repeat(`up{a="bcdefgh"}+`, 950)+"up", "too much memory to describe"),
		textAttack("parse_query", strings.Repeat("a and ", 2600)+"a", "the maximum is 1000"),
		textAttack("query_exemplars", strings.Repeat("2^", 8000)+"2", "the maximum is 1000"),
		textAttack("query_exemplars", "up"+strings.Repeat("[", 10_000), "parse error"),
		textAttack("format_query", strings.Repeat("x", 900_000), "Split a long query into several"),
		{"labels by an endless selector", "/api/v1/labels", url.Values{"match[]": {strings.Repeat("{", 10_000)}}, "parse error"},
		{"rules by a selector", "/api/v1/rules", url.Values{"match[]": {`{a=~"` + strings.Repeat("(", 8000) + `"}`}}, "missing closing"},
		{"rules by a selector with repetitions", "/api/v1/rules", url.Values{"match[]": {`{a=~"` + strings.Repeat("((abcdefghij){100}){10}", 100) + `"}`}}, "fewer or smaller repetitions"},
		{"targets by a selector with repetitions", "/api/v1/targets/metadata", url.Values{"match_target": {`{a=~"` + strings.Repeat("((abcdefghij){100}){10}", 100) + `"}`}}, "fewer or smaller repetitions"},
		{"remote read", "/api/v1/read", url.Values{"a": {strings.Repeat("x", 10_000)}}, "does not offer remote read"},
		{"formatting", "/api/v1/format_query", url.Values{"query": {`up{job=~"` + strings.Repeat("((abcdefghij){100}){10}", 100) + `"}`}}, "fewer or smaller repetitions"},
	}
}

// send sends an attack. It returns the status, and the reason if the answer is an error.
func (a attack) send(t *testing.T, s *teescope) (status int, reason string, err error) {
	t.Helper()
	client := &http.Client{Timeout: testLimit}
	var resp *http.Response
	if slices.Contains([]string{"/api/v1/metadata", "/api/v1/rules", "/api/v1/targets/metadata"}, a.path) {
		resp, err = client.Get("http://" + s.addr + a.path + "?" + a.values.Encode())
	} else {
		resp, err = client.PostForm("http://"+s.addr+a.path, a.values)
	}
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, "", err
	}
	var said struct{ Status, ErrorType, Error string }
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, "", nil
	}
	if resp.StatusCode == http.StatusRequestEntityTooLarge {
		return resp.StatusCode, string(text), nil
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Status != "error" || said.Error == "" {
		return resp.StatusCode, "", fmt.Errorf("the answer is not an error of the API: %.200s", text)
	}
	return resp.StatusCode, said.Error, nil
}

// No request may end the process or make it exceed its limit of memory.
func TestNoQueryEndsTheProcess(t *testing.T) {
	for _, command := range []string{"server", "up"} {
		t.Run(command, func(t *testing.T) {
			s := attacked(t, command)
			processes := s.group()
			for _, a := range attacks() {
				before := s.peak(t)
				began := time.Now()
				status, reason, err := a.send(t, s)
				for tries := 0; status == http.StatusServiceUnavailable && a.want != "" && tries < int(testLimit.Seconds()); tries++ { // the server is busy with the one before
					time.Sleep(time.Second)
					status, reason, err = a.send(t, s)
				}
				t.Logf("%s: %d in %s, %+.0f MiB", a.name, status, time.Since(began).Round(time.Millisecond), (s.peak(t)-before)/mib)
				switch {
				case err != nil:
					t.Errorf("%s: %v", a.name, err)
				case a.want != "" && (status < 400 || status > 499 && status != http.StatusNotImplemented || !strings.Contains(reason, a.want)):
					t.Errorf("%s: %d %.300s, want %q", a.name, status, reason, a.want)
				case a.want == "" && status >= 500 && status != http.StatusServiceUnavailable: // a slow machine reaches the limit of time
					t.Errorf("%s: %d %.300s", a.name, status, reason)
				}
				if now := s.group(); !slices.Equal(now, processes) {
					t.Fatalf("%s ended a process: they were %v and are %v\n%.3000s", a.name, processes, now, s.log.String())
				}
			}
			s.stillAnswers(t)
			peak := s.peak(t)
			t.Logf("at most %.0f MiB were in use", peak/mib)
			if peak > attackLimit {
				t.Errorf("%.0f MiB were in use, and the limit is %d MiB", peak/mib, attackLimit/mib)
			}
		})
	}
}

// A server does not start with a rule that would take too much memory. The error names the file, the line and the rule.
func TestNoRuleEndsTheProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	const rules = "groups:\n- name: g\n  rules:\n  - alert: Attack\n    expr: max_over_time(up[365d:1ms]) > 1\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	s := background(t, binary, "server", "--listen", freeAddr(t), "--data-dir", t.TempDir(), "--targets", freeAddr(t), "--rules.files", file)
	if err := s.ended(t, startWithin); err == nil {
		t.Error("the server ended without an error")
	}
	want := file + `:4: rule "Attack": the subquery [1y:1ms] needs`
	if said := s.log.String(); !strings.Contains(said, want) || !strings.Contains(said, "use a larger step than 1ms") {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// No request that another site makes a browser send reaches the data. A link to the page does.
func TestNoOtherSiteReachesTheData(t *testing.T) {
	s := start(t, "up", "--data-dir", t.TempDir())
	ask := func(path string, header ...string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"/api/v1/query?query=up", "/metrics", "/api/findings", "/api/v1/metadata"} {
		for _, site := range []string{"cross-site", "same-site", "anything"} {
			for _, mode := range []string{"navigate", "no-cors", "cors", "websocket"} {
				if status := ask(path, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", mode, "Sec-Fetch-Dest", "document"); status != http.StatusForbidden {
					t.Errorf("%s from %s by %s: %d", path, site, mode, status)
				}
			}
		}
		for _, site := range []string{"", "none", "same-origin"} {
			if status := ask(path, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate"); status != http.StatusOK {
				t.Errorf("%s from %q: %d", path, site, status)
			}
		}
	}
	if status := ask("/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"); status != http.StatusOK {
		t.Errorf("a link to the page: %d", status)
	}
}

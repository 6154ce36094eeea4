// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// fresh sends a request on a new connection. The host is what the request names.
func fresh(network, addr, path, host, user, password string) (status int, body string, err error) {
	client := &http.Client{Timeout: testLimit, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}}
	req, err := http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// serves requires that a new client gets the status 200 at once.
func (s *teescope) serves(t *testing.T, path string) {
	t.Helper()
	if status, body, err := fresh("tcp", s.addr, path, "localhost", "", ""); err != nil || status != http.StatusOK {
		t.Errorf("%s of %s: %d %.200q, %v", path, s.name, status, body, err)
	}
}

// keepsAnswering requires the same again and again, while the buffers of other clients fill.
func (s *teescope) keepsAnswering(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !t.Failed(); time.Sleep(50 * time.Millisecond) {
		s.serves(t, path)
	}
}

// lazy connects n clients that send a text and read nothing.
func lazy(t *testing.T, addr string, n int, text string) []net.Conn {
	t.Helper()
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2048) })
	}}
	var all []net.Conn
	for range n {
		conn, err := small.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		all = append(all, conn)
	}
	return all
}

// isClosed waits until the server has closed a connection.
func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(testLimit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && os.IsTimeout(err) {
		t.Error("the connection is still open")
	}
}

// pipelined is the number of requests that a client sends at once. Their answers fill the buffers of its socket.
const pipelined = 100

const halfRequest = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"

// Clients that read nothing hold no slot: neither for scrapes nor for queries.
func TestAttackSlowReaders(t *testing.T) {
	t.Parallel()
	u := start(t, "up", "--data-dir", t.TempDir())
	lazy(t, u.addr, 16, strings.Repeat(halfRequest+"\r\n", pipelined))
	u.keepsAnswering(t, "/metrics")
	everything := "/api/v1/query?query=" + url.QueryEscape(`{__name__=~".+"}`)
	eventually(t, testLimit, "series that fill the buffers of a socket", func() error {
		_, body, err := fresh("tcp", u.addr, everything, "localhost", "", "")
		if err == nil && len(body) < 300_000 {
			err = fmt.Errorf("%d bytes", len(body))
		}
		return err
	})
	lazy(t, u.addr, 16, strings.Repeat("GET "+everything+" HTTP/1.1\r\nHost: localhost\r\n\r\n", pipelined))
	u.keepsAnswering(t, "/api/v1/query?query=1")
	u.serves(t, "/metrics")
}

// Connections without a request, and with one that never ends, hold no place. They end by themselves.
func TestAttackIdleConnections(t *testing.T) {
	a := agent(t)
	scraper := &http.Client{Transport: &http.Transport{}, Timeout: testLimit}
	for range 4 {
		resp, err := scraper.Get("http://" + a.addr + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		time.Sleep(100 * time.Millisecond)
	}
	slow := lazy(t, a.addr, 10, halfRequest)
	lazy(t, a.addr, 600, "")
	a.serves(t, "/metrics")
	lazy(t, a.addr, 600, halfRequest)
	a.serves(t, "/metrics")
	a.serves(t, "/-/healthy")
	for _, conn := range slow {
		isClosed(t, conn)
	}
	resp, err := scraper.Get("http://" + a.addr + "/metrics")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a regular scraper: %v, %v", resp, err)
	}
	if err == nil {
		resp.Body.Close()
	}
}

// A request whose body never comes holds no place in the queue of queries.
func TestAttackSlowBodies(t *testing.T) {
	s := start(t, "server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1")
	lazy(t, s.addr, 100, "POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nquery=")
	s.serves(t, "/api/v1/query?query=1")
}

// No SIGHUP ends a service: not while it starts, runs or stops.
func TestAttackHangup(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"agent"},
		{"server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1"},
		{"up", "--data-dir", t.TempDir()},
	} {
		addr := freeAddr(t)
		p := background(t, binary, append(args, "--listen", addr)...)
		eventually(t, startWithin, "the port", func() error {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err
		})
		hang := func() {
			_ = p.cmd.Process.Signal(syscall.SIGHUP) // fails when it has ended
		}
		eventually(t, startWithin, args[0]+" to be ready", func() error {
			hang()
			select {
			case <-p.done:
				t.Fatalf("%s ended: %v", args[0], p.err)
			default:
			}
			_, err := get("http://" + addr + "/-/ready")
			return err
		})
		for range 20 {
			hang()
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		for ended := false; !ended; {
			hang()
			select {
			case <-p.done:
				ended = true
			case <-time.After(time.Millisecond):
			}
		}
		if p.err != nil {
			t.Errorf("%s after SIGTERM and SIGHUP: %v\n%s", args[0], p.err, p.log.String())
		}
	}
}

// A file of passwords that becomes empty or invalid, or vanishes, refuses all requests.
func TestAttackEmptyPasswords(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	good := "basic_auth_users:\n  alice: " + string(hash) + "\n"
	web := filepath.Join(t.TempDir(), "web.yml")
	write := func(text string) {
		if err := os.WriteFile(web, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	addr := freeAddr(t)
	background(t, binary, "agent", "--listen", addr, "--web.config-file", web)
	want := func(when string, anonymous, alice int) {
		t.Helper()
		for user, want := range map[string]int{"": anonymous, "alice": alice} {
			if status, body, err := fresh("tcp", addr, "/metrics", "localhost", user, "secret"); err != nil || status != want {
				t.Errorf("%s, as %q: %d %.100q (%v), want %d", when, user, status, body, err, want)
			}
		}
	}
	eventually(t, startWithin, "the agent", func() error {
		status, _, err := fresh("tcp", addr, "/metrics", "localhost", "alice", "secret")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
	want("with a password", 401, 200)
	for _, bad := range []string{"", "\n", "# nobody\n", "{}\n", "basic_auth_users: {}\n", "basic_auth_users:\n", "basic_auth_users: [\n", "http_server_config:\n  http2: true\n"} {
		write(bad)
		want(fmt.Sprintf("with the file %q", bad), 503, 503)
	}
	write(good)
	want("with the password again", 401, 200)
	if err := os.Remove(web); err != nil {
		t.Fatal(err)
	}
	want("without the file", 503, 503)
	says(t, refused(t, 0, "agent", "--listen", freeAddr(t), "--web.config-file", os.DevNull), "it is empty")
}

// A client that tries passwords is slowed, and a client with the right one is not.
func TestAttackPasswords(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.DefaultCost)
	if err != nil {
		t.Fatal(err)
	}
	web := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(web, []byte("basic_auth_users:\n  alice: "+string(hash)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	background(t, binary, "agent", "--listen", addr, "--web.config-file", web)
	eventually(t, startWithin, "the agent", func() error {
		status, _, err := fresh("tcp", addr, "/metrics", "localhost", "alice", "secret")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
	refusals := 0
	for i := range 40 {
		status, _, err := fresh("tcp", addr, "/metrics", "localhost", "alice", fmt.Sprint(i))
		switch {
		case err != nil || status != 401 && status != 429:
			t.Fatalf("a wrong password: %d, %v", status, err)
		case status == 429:
			refusals++
		}
	}
	if refusals < 10 {
		t.Errorf("%d of 40 wrong passwords are refused without a computation", refusals)
	}
	if status, _, err := fresh("tcp", addr, "/-/healthy", "localhost", "alice", "secret"); err != nil || status != 200 {
		t.Errorf("the right password: %d, %v", status, err)
	}
}

// The variables that Kubernetes sets for Services of these names do not stop the start.
func TestAttackServiceVariables(t *testing.T) {
	for _, name := range []string{"TEESCOPE", "TEESCOPE_AGENT", "TEESCOPE_SERVER"} {
		for variable, value := range map[string]string{
			"SERVICE_HOST": "10.0.0.7", "SERVICE_PORT": "9750", "SERVICE_PORT_HTTP": "9750", "PORT": "tcp://10.0.0.7:9750",
			"PORT_9750_TCP": "tcp://10.0.0.7:9750", "PORT_9750_TCP_PROTO": "tcp", "PORT_9750_TCP_PORT": "9750", "PORT_9750_TCP_ADDR": "10.0.0.7",
		} {
			t.Setenv(name+"_"+variable, value)
		}
	}
	s := start(t, "server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1")
	says(t, s.log.String(), "ignoring variables that Kubernetes sets", "TEESCOPE_AGENT_PORT ")
}

// Beyond the loopback an address needs authentication or --web.insecure, and a request must name the server.
func TestAttackForeignAddressesAndNames(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{":" + port, "0.0.0.0:" + port, "[::]:" + port} {
		says(t, refused(t, 0, "agent", "--listen", addr), regexp.QuoteMeta(addr), "--web.config-file", "--web.insecure", "127.0.0.1")
	}
	all := background(t, binary, "server", "--listen", "0.0.0.0:"+port, "--web.insecure", "--web.hosts", "*.svc",
		"--web.external-url", "https://tee.example.org/t", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1")
	one := start(t, "server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1")
	eventually(t, startWithin, "the server", func() error {
		_, err := get("http://127.0.0.1:" + port + "/-/ready")
		return err
	})
	for _, tt := range []struct {
		addr, host string
		want       int
	}{
		{"127.0.0.1:" + port, "rebound.example", 403}, {"127.0.0.1:" + port, "tee.example.org.evil.example", 403}, {"127.0.0.1:" + port, "svc", 403},
		{"127.0.0.1:" + port, "tee.example.org", 200}, {"127.0.0.1:" + port, "teescope.monitoring.svc:9750", 200}, {"127.0.0.1:" + port, "10.1.2.3", 200},
		{one.addr, "rebound.example", 403}, {one.addr, "10.1.2.3", 403}, {one.addr, "localhost", 200}, {one.addr, strings.Repeat("a", 60_000), 403},
	} {
		for _, path := range []string{"/", "/api/v1/query?query=1", "/metrics", "/-/healthy"} {
			status, body, err := fresh("tcp", tt.addr, path, tt.host, "", "")
			if err != nil || status != tt.want || len(body) > 1000 && status != 200 {
				t.Errorf("%s of %.40s: %d %.200q (%v), want %d", path, tt.host, status, body, err, tt.want)
			}
		}
	}
	if n := strings.Count(all.log.String()+one.log.String(), "rebound"); n > 0 {
		t.Errorf("%d lines of log about names that others choose", n)
	}
}

// A unix socket has permissions, and top and a browser's proxy can use it.
func TestAttackUnixSocket(t *testing.T) {
	dir := openDir(t)
	path := filepath.Join(dir, "t.sock")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// A process that was killed leaves its socket behind.
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	background(t, binary, "agent", "--listen", "unix:"+path, "--web.socket-mode", "0600")
	eventually(t, startWithin, "the agent", func() error {
		status, body, err := fresh("unix", path, "/metrics", "any.name", "", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	})
	if out := run(t, binary, "top", "--once", "--interval", "200ms", "--connect", "unix:"+path); !strings.Contains(out, "WORKLOAD") {
		t.Errorf("top says %q", out)
	}
	says(t, refused(t, nobody, "top", "--once", "--connect", "unix:"+path), "permission denied")
	says(t, refused(t, 0, "agent", "--listen", "unix:"+path), "another process is listening there")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(t, refused(t, 0, "agent", "--listen", "unix:"+file), "not a socket")
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// The page, the API and redirects work below a path of nginx.
func TestPageBelowAProxysPath(t *testing.T) {
	u := start(t, "server", "--data-dir", t.TempDir(), "--targets", "127.0.0.1:1", "--web.external-url", "http://tee.example.org/a/tee")
	dir, front := t.TempDir(), freeAddr(t)
	conf := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr;
events { worker_connections 64; }
http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen %[2]s; location /a/tee/ { proxy_pass http://%[3]s/; proxy_set_header Host $http_host; } } }
`, dir, front, u.addr)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, "nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	base := "/a/tee/"
	through := func(path string) (int, string) {
		t.Helper()
		status, body, err := fresh("tcp", front, path, "tee.example.org", "", "")
		if err != nil {
			t.Fatal(err)
		}
		return status, body
	}
	eventually(t, testLimit, "nginx", func() error {
		conn, err := net.Dial("tcp", front)
		if err == nil {
			conn.Close()
		}
		return err
	})
	_, page := through(base)
	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 3 {
		t.Fatalf("the page has %d links: %.300s", len(links), page)
	}
	paths := []string{base + "-/ready", base + "api/v1/query?query=1", base + "docs/runbooks/target-down.md", base + "graph?g0.expr=up"}
	for _, link := range links {
		to, err := url.Parse("http://tee.example.org" + base)
		if err != nil {
			t.Fatal(err)
		}
		if to, err = to.Parse(link[1]); err != nil || !strings.HasPrefix(to.Path, base) {
			t.Errorf("the page links to %s, which is not below its path (%v)", link[1], err)
			continue
		}
		paths = append(paths, to.Path)
	}
	for _, path := range paths {
		if status, body := through(path); status != http.StatusOK {
			t.Errorf("%s: %d %.100s", path, status, body)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestAServerWithAnotherDatabase(t *testing.T) {
	load := func(args ...string) (*Config, error) {
		f := pflag.NewFlagSet("server", pflag.ContinueOnError)
		Flags(f, Server)
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		return Load(Input{Command: Server, Flags: f, Host: Host{UID: 0}})
	}
	c, err := load("--query.url", "http://p:9090/a")
	if err != nil || c.Query.URL.String() != "http://p:9090/a" {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = load("--query.url", "http://p:9090", "--targets", "n:9750", "--remote-write.urls", "http://m/api/v1/push")
	if err == nil || !strings.Contains(err.Error(), "2 problems") || strings.Count(err.Error(), "stores and scrapes nothing") != 2 {
		t.Error(err)
	}
	if _, err := load("--query.url", "p:9090"); err == nil || strings.Contains(err.Error(), "problems") {
		t.Errorf("a wrong address is not the only problem: %v", err)
	}
	if _, err := load(); err == nil {
		t.Error("a server without targets and another database starts")
	}
}

// TestSendingOnly says what a process without a database needs, and what it cannot do.
func TestSendingOnly(t *testing.T) {
	load := func(args ...string) (*Config, error) {
		f := pflag.NewFlagSet("server", pflag.ContinueOnError)
		Flags(f, Server)
		if err := f.Parse(append(args, "--targets", "n:9750")); err != nil {
			t.Fatal(err)
		}
		return Load(Input{Command: Server, Flags: f, Host: Host{UID: 0}})
	}
	c, err := load("--remote-write.only", "--remote-write.urls", "http://m/v1/metrics", "--remote-write.protocol", "otlp")
	if err != nil || !c.RemoteWrite.Only || c.RemoteWrite.Protocol != "otlp" {
		t.Errorf("%+v, %v", c, err)
	}
	for want, args := range map[string][]string{
		"there is no receiver":         {"--remote-write.only"},
		"otlp needs remote-write.only": {"--remote-write.protocol", "otlp", "--remote-write.urls", "http://m/v1"},
		"has no database and sends":    {"--remote-write.only", "--remote-write.urls", "http://m/v1", "--rules.files", "/r.yml"},
		"9 values; the maximum is 8":   {"--remote-write.urls", "http://m/1,http://m/2,http://m/3,http://m/4,http://m/5,http://m/6,http://m/7,http://m/8,http://m/9"},
		"stores and scrapes nothing":   {"--query.url", "http://p:9090", "--remote-write.only", "--remote-write.urls", "http://m/v1"},
	} {
		if _, err := load(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

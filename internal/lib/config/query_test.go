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

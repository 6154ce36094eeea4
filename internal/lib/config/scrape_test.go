// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:9121":                       "application=http://127.0.0.1:9121/metrics",
		"redis=http://127.0.0.1:9121/metrics":         "redis=http://127.0.0.1:9121/metrics",
		"https://host/probe?target=x&module=y":        "application=https://host/probe?target=x&module=y",
		"db=http://[::1]:9187/m#top":                  "db=http://[::1]:9187/m",
		"http://host:1/federate?match[]={__name__=x}": "application=http://host:1/federate?match[]={__name__=x}",
	} {
		e, err := parseEndpoint(text)
		if err != nil || e.String() != want {
			t.Errorf("parseEndpoint(%q) = %s, %v; want %s", text, e, err, want)
			continue
		}
		if again, err := parseEndpoint(e.String()); err != nil || again.String() != want {
			t.Errorf("%s is read back as %v, %v", want, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "not an http", "host:9121": "", "ftp://host/x": "not an http", "http://": "no host", "http:///metrics": "no host",
		"=http://host": "empty or reserved", "teescope=http://host": "empty or reserved", "http://u:p@host": "password", "http://a b": "",
	} {
		_, err := parseEndpoint(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "NAME=http") {
			t.Errorf("parseEndpoint(%q) = %v, want %q and how to write it", text, err, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for s, want := range map[string]string{
		"1.0": "1.0", "1.6.2": "1.6", "v1.7-ITP": "1.7", "1.9post": "1.9", "1.8~UNRELEASED": "1.8", "1.8-1": "1.8", "1.12": "1.12",
		"": "-", "2.0": "-", "1": "-", "1.": "-", "1.123": "-", "1.8\n": "-", "1.8 or so": "-", "-1.8": "-", "1.8" + strings.Repeat("a", 99): "-",
	} {
		v, err := ParseVersion(s, "test")
		if got := v.String(); want == "-" && err == nil || want != "-" && (got != want || err != nil) {
			t.Errorf("%q is %s, %v", s, got, err)
		}
	}
	old, at := Upto(7, "stats"), Versions{4, 9, "log"}
	both, ok := old.Narrow(&at)
	if !ok || both.String() != "1.4 to 1.7" || both.Before("1.7") || !both.Before("1.8") || !both.Since("1.4") || both.Since("1.5") {
		t.Errorf("%v", both)
	}
	exact, err := ParseVersion("1.8", "file")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := both.Narrow(&exact); ok {
		t.Error("1.8 is no version from 1.4 to 1.7")
	}
	var unknown *Versions
	if v, _ := unknown.Narrow(&exact); v != &exact || unknown.Before("1.9") || unknown.Since("1.0") {
		t.Errorf("%v", v)
	}
	if v, _ := at.Narrow(&exact); v.Source != "file" || v.String() != "1.8" {
		t.Errorf("%v", v)
	}
	for commit := range releases {
		if v, ok := VersionOfCommit(commit, "log"); !ok || v.Least != v.Most || len(commit) != 40 {
			t.Errorf("%s is %s", commit, &v)
		}
	}
}

func TestInstalledVersion(t *testing.T) {
	for data, want := range map[string]string{
		"# SPDX\n\n__version__ = '1.9'\n":                                                   "1.9 3",
		"Metadata-Version: 2.1\nName: graminelibos\nVersion: 1.7\n":                         "1.7 3",
		"Package: gramine-ratls-dcap\nVersion: 2\n\nPackage: gramine\r\nVersion: 1.8-1\r\n": "1.8-1 5",
		"Name        : gramine\nVersion     : 1.5\n":                                        "1.5 2",
		"Package: gramine\nStatus: deinstall ok config-files\nVersion: 1.5\n\nPackage: gramine-dcap\nStatus: install ok installed\nVersion: 1.8\n": "1.8 7",
		"Package: bash\nVersion: 5.2\n":                              "-",
		"Version: 1.8\nPackage: gramine\n\nPackage: x\nVersion: 1\n": "-",
		"": "-", "__version__ = '@VERSION@\n": "-",
	} {
		s, line, ok := InstalledVersion([]byte(data))
		got := "-"
		if ok {
			got = s + " " + string(rune('0'+line))
		}
		if got != want {
			t.Errorf("%q: %s, want %s", data, got, want)
		}
	}
}

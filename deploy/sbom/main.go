// SPDX-License-Identifier: Apache-2.0

// Command sbom writes the software bill of materials of a binary: the Go modules that are linked into it, and the npm
// packages whose code is in its page. It does not list what only builds or tests teescope.
//
//	sbom -bin bin/teescope -lock web/package-lock.json bin/teescope.cdx.json
//
// The format is CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/). The file has no time and no serial number, so
// that the same binary gives the same file.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	bin := flag.String("bin", "bin/teescope", "the binary")
	lock := flag.String("lock", "web/package-lock.json", "the lock file of the page")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "sbom: name the file to write")
		os.Exit(2)
	}
	if err := write(*bin, *lock, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// document is the part of CycloneDX that is used here.
type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func write(bin, lock, to string) error {
	built, err := buildinfo.ReadFile(bin)
	if err != nil {
		return fmt.Errorf("reading the modules of %s: %w", bin, err)
	}
	packages, err := npmPackages(lock)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(describe(built, packages), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}

func describe(built *debug.BuildInfo, packages []component) document {
	d := document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	d.Metadata.Component = module(built.Main)
	d.Metadata.Component.Type = "application"
	for _, s := range built.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "CGO_ENABLED", "vcs.revision", "vcs.modified"}, s.Key) {
			d.Metadata.Component.Properties = append(d.Metadata.Component.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	std := strings.TrimPrefix(strings.Fields(built.GoVersion)[0], "go")
	d.Components = []component{named("golang", "std", std)}
	for _, m := range built.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, module(*m))
	}
	d.Components = append(d.Components, packages...)
	return d
}

func named(kind, name, version string) component {
	// A scope is escaped: https://github.com/package-url/purl-spec, type npm.
	purl := fmt.Sprintf("pkg:%s/%s@%s", kind, strings.Replace(name, "@", "%40", 1), version)
	return component{Type: "library", Ref: purl, Name: name, Version: version, PURL: purl}
}

func module(m debug.Module) component {
	c := named("golang", m.Path, m.Version)
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}} // of the module's files, not of an archive, so it is not a hash here
	}
	return c
}

// npmPackages returns the packages of a lock file except those for development: the page contains no other.
func npmPackages(file string) ([]component, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version   string `json:"version"`
			Integrity string `json:"integrity"`
			Dev       bool   `json:"dev"`
			Optional  bool   `json:"optional"`
			DevOption bool   `json:"devOptional"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var list []component
	for path, p := range lock.Packages {
		at := strings.LastIndex(path, "node_modules/")
		if at < 0 || p.Dev || p.Optional || p.DevOption {
			continue
		}
		c := named("npm", path[at+len("node_modules/"):], p.Version)
		if sum, found := strings.CutPrefix(p.Integrity, "sha512-"); found {
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %s: %w", file, path, err)
			}
			c.Hashes = []hash{{"SHA-512", hex.EncodeToString(raw)}}
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b component) int { return strings.Compare(a.PURL, b.PURL) })
	return list, nil
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/rpmpack"
)

// deb writes a Debian package: an ar archive of a version and two tar archives. See deb(5).
func deb(p parts) ([]byte, error) {
	var sums, configs strings.Builder
	size := 0
	for _, f := range p.files {
		size += len(f.data)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name[1:])
		if f.config {
			configs.WriteString(f.name + "\n")
		}
	}
	about := fmt.Sprintf("Package: teescope\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nRecommends: systemd\nSection: admin\nPriority: optional\nHomepage: %s\nDescription: %s\n %s\n",
		p.version, p.arch, maintainer, (size+1023)/1024, homepage, summary, description)
	control := []file{
		{name: "/conffiles", mode: 0o644, data: []byte(configs.String())}, {name: "/control", mode: 0o644, data: []byte(about)}, {name: "/md5sums", mode: 0o644, data: []byte(sums.String())},
	}
	for _, name := range []string{"postinst", "postrm", "prerm"} {
		control = append(control, file{name: "/" + name, mode: 0o755, data: []byte(p.scripts[name])})
	}
	controlTar, err := archive(control, p.time)
	if err != nil {
		return nil, err
	}
	dataTar, err := archive(p.files, p.time)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, member := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar.gz", controlTar}, {"data.tar.gz", dataTar}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, p.time.Unix(), 0, 0, "100644", len(member.data))
		b.Write(member.data)
		if len(member.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

// archive writes a compressed tar archive of files and their directories, all of root.
func archive(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	t := tar.NewWriter(compressed)
	var made []string
	for _, f := range files {
		for _, dir := range parents(f.name) {
			if slices.Contains(made, dir) {
				continue
			}
			made = append(made, dir)
			if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "." + dir + "/", Mode: 0o755, ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}); err != nil {
				return nil, err
			}
		}
		if err := t.WriteHeader(&tar.Header{Name: "." + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatGNU}); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return b.Bytes(), err
}

// parents are the directories of a file, the outermost first.
func parents(name string) []string {
	var all []string
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		all = append(all, dir)
	}
	slices.Reverse(all)
	return all
}

// rpm writes an RPM package.
func rpm(p parts) ([]byte, error) {
	r, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "teescope", Version: p.version, Release: "1", Arch: map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[p.arch], OS: "linux",
		Summary: summary, Description: description, Licence: license, URL: homepage, Packager: maintainer, BuildHost: "localhost", BuildTime: p.time, Compressor: "gzip",
	})
	if err != nil {
		return nil, err
	}
	for _, f := range p.files {
		kind := rpmpack.GenericFile
		if f.config {
			kind = rpmpack.ConfigFile | rpmpack.NoReplaceFile
		}
		r.AddFile(rpmpack.RPMFile{Name: f.name, Body: f.data, Mode: uint(0o100000 | f.mode), Owner: "root", Group: "root", MTime: uint32(p.time.Unix()), Type: kind})
	}
	r.AddPostin(p.scripts["postinst"])
	r.AddPreun(p.scripts["prerm"])
	r.AddPostun(p.scripts["postrm"])
	var b bytes.Buffer
	err = r.Write(&b)
	return b.Bytes(), err
}

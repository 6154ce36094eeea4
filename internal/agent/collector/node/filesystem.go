// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"github.com/teescope/teescope/internal/lib/lazy"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/metric"
	"github.com/teescope/teescope/internal/lib/text"
)

// node_exporter's defaults: file systems without data of their own, and those of containers.
var (
	mountsIgnored = lazy.Regexp(`^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+|var/lib/containers/storage/.+)($|/)`)
	typesIgnored  = lazy.Regexp(`^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|erofs|sysfs|tracefs)$`)
)

const (
	// statfsPatience is the time that a scrape waits for all file systems together. A later answer, as from
	// NFS without its server, is an error of that file system only.
	statfsPatience = time.Second
	// timedOut is node_exporter's text for this error.
	timedOut = "mountpoint timeout"
)

// mount is a line of mountinfo.
type mount struct {
	device, point, fstype, major, minor string
	path                                string // path for statfs
	readOnly                            bool
}

type filesystem struct {
	opts   Options
	caller *statfsCaller

	size, free, avail, files, filesFree *metric.Desc
	readOnly, deviceError, mountInfo    *metric.Desc
}

func newFilesystem(o Options, k kernel) part {
	labels := []string{"device", "mountpoint", "fstype", "device_error"}
	fs := &filesystem{
		opts: o, caller: newStatfsCaller(k.statfs),
		size:        gauge("node_filesystem_size_bytes", "bytes", "Filesystem size in bytes.", "statfs(2)", labels...),
		free:        gauge("node_filesystem_free_bytes", "bytes", "Filesystem free space in bytes.", "statfs(2)", labels...),
		avail:       gauge("node_filesystem_avail_bytes", "bytes", "Filesystem space available to non-root users in bytes.", "statfs(2)", labels...),
		files:       gauge("node_filesystem_files", "inodes", "Filesystem total file nodes.", "statfs(2)", labels...),
		filesFree:   gauge("node_filesystem_files_free", "inodes", "Filesystem total free file nodes.", "statfs(2)", labels...),
		readOnly:    gauge("node_filesystem_readonly", "", "Filesystem read-only status.", "/proc/1/mountinfo", labels...),
		deviceError: gauge("node_filesystem_device_error", "", "Whether an error occurred while getting statistics for the given device.", "statfs(2)", labels...),
		mountInfo:   info("node_filesystem_mount_info", "Filesystem mount information.", "/proc/1/mountinfo", "device", "major", "minor", "mountpoint"),
	}
	return part{"filesystem", []*metric.Desc{
		fs.size, fs.free, fs.avail, fs.files, fs.filesFree, fs.readOnly, fs.deviceError, fs.mountInfo,
	}, fs.collect}
}

func (fs *filesystem) collect(ctx context.Context, emit func(prometheus.Metric)) error {
	mounts, err := fs.mounts()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statfsPatience)
	defer cancel()
	answers := fs.caller.call(ctx, mounts)
	// The same device can be mounted twice on one mount point, but a series must be emitted only once.
	seen, seenInfo := map[[3]string]bool{}, map[[4]string]bool{}
	for _, m := range mounts {
		key := [3]string{m.device, m.point, m.fstype}
		if !seen[key] {
			seen[key] = true
			fs.emitMount(m, answers, emit)
		}
		infoKey := [4]string{m.device, m.major, m.minor, m.point}
		if a, ok := answers[m.path]; ok && a.err == nil && !seenInfo[infoKey] {
			seenInfo[infoKey] = true
			emit(fs.mountInfo.Value(1, m.device, m.major, m.minor, m.point))
		}
	}
	return nil
}

func (fs *filesystem) emitMount(m mount, answers map[string]answer, emit func(prometheus.Metric)) {
	fault, faulty, readOnly := "", 0.0, 0.0
	a, ok := answers[m.path]
	switch {
	case !ok:
		fault, faulty = timedOut, 1
	case a.err != nil:
		fault, faulty = a.err.Error(), 1
	}
	if m.readOnly {
		readOnly = 1
	}
	labels := []string{m.device, m.point, m.fstype, fault}
	emit(fs.deviceError.Value(faulty, labels...))
	emit(fs.readOnly.Value(readOnly, labels...))
	if faulty != 0 {
		return
	}
	block := float64(a.stat.Bsize)
	emit(fs.size.Value(float64(a.stat.Blocks)*block, labels...))
	emit(fs.free.Value(float64(a.stat.Bfree)*block, labels...))
	emit(fs.avail.Value(float64(a.stat.Bavail)*block, labels...))
	emit(fs.files.Value(float64(a.stat.Files), labels...))
	emit(fs.filesFree.Value(float64(a.stat.Ffree), labels...))
}

// mounts reads the mounts of the first process, which are the host's in a container that shares the host's
// /proc. If hidepid hides the first process, mounts reads those of the agent.
func (fs *filesystem) mounts() ([]mount, error) {
	proc, err := procfs.NewFS(fs.opts.Proc)
	if err != nil {
		return nil, err
	}
	all, err := proc.GetProcMounts(1)
	if errors.Is(err, os.ErrNotExist) {
		all, err = proc.GetMounts()
	}
	if err != nil {
		return nil, err
	}
	var mounts []mount
	for _, m := range all {
		point := fs.strip(unescape(m.MountPoint))
		if mountsIgnored().MatchString(point) || typesIgnored().MatchString(m.FSType) {
			continue
		}
		major, minor, _ := strings.Cut(m.MajorMinorVer, ":")
		mounts = append(mounts, mount{
			device: text.UTF8(unescape(m.Source)), point: text.UTF8(point), fstype: text.UTF8(m.FSType), major: text.UTF8(major), minor: text.UTF8(minor),
			path: filepath.Join(fs.opts.RootFS, point), readOnly: isReadOnly(m),
		})
	}
	return mounts, nil
}

// strip removes the agent's prefix from the host's mount points.
func (fs *filesystem) strip(point string) string {
	root := filepath.Clean(fs.opts.RootFS)
	rest, ok := strings.CutPrefix(point, root)
	switch {
	case root == "/" || !ok || rest != "" && rest[0] != '/':
		return point
	case rest == "":
		return "/"
	}
	return rest
}

// isReadOnly follows node_exporter's issue 3157: after an error ext4 has the option emergency_ro.
func isReadOnly(m *procfs.MountInfo) bool {
	_, mount := m.Options["ro"]
	_, super := m.SuperOptions["ro"]
	_, emergency := m.SuperOptions["emergency_ro"]
	return mount || super || emergency
}

// unescape reverses mangle_path of the kernel (fs/seq_file.c), which writes four characters in octal.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// answer is the result of statfs for a path.
type answer struct {
	path string
	stat unix.Statfs_t
	err  error
}

// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// Subject is the recorded program. The zero value is nothing: then only the machine has conditions.
type Subject struct {
	PID     int      // the process, for its affinity; 0 for none
	Loaded  bool     // whether the libraries of the process are those of the program
	Path    string   // the executable file; empty for none
	Args    []string // the arguments, among which manifests of Gramine are looked for
	Dir     string   // the working directory, for manifests and the git commit; empty for none
	Environ []string // the environment, as NAME=VALUE
}

// read adds the conditions of the subject.
func (s Subject) read(all *list, h Host) {
	if s.PID > 0 {
		cpus, nodes := h.Proc.Process(s.PID).Allowed() // it has ended: not known
		all.add(Identity, affinity, cpus)
		all.add(Identity, "memory_nodes", nodes)
	}
	if s.Path != "" {
		executable(all, s.Path)
	}
	if s.Loaded {
		libraries(all, h.Proc.Process(s.PID))
	}
	if s.Dir != "" {
		s.manifests(all)
		git(all, s.Dir)
	}
	environment(all, s.Environ)
}

// maxExecutable is the size of an executable that is hashed and parsed, in bytes.
const maxExecutable = 512 << 20

// executable adds what identifies an executable file.
func executable(all *list, path string) {
	all.add(Program, "program", filepath.Base(path))
	f, err := inputfile.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	all.add(Program, "program_bytes", strconv.FormatInt(info.Size(), 10))
	if info.Size() > maxExecutable {
		return
	}
	all.add(Program, "program_sha256", hash(f, maxExecutable))
	all.add(Program, "program_build_id", buildID(f))
	if build, err := buildinfo.Read(f); err == nil {
		goBuild(all, build)
	}
}

// hash returns the SHA-256 of a file of at most the given number of bytes.
func hash(r io.Reader, most int64) string {
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(r, most+1)); err != nil || n > most {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// maxNotes bounds the notes that are searched, in bytes.
const maxNotes = 64 << 10

// buildID returns the build ID that the linker has written (elf(5), NT_GNU_BUILD_ID), in hexadecimal.
func buildID(r io.ReaderAt) string {
	f, err := elf.NewFile(r)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // nothing was written
	for _, segment := range f.Progs {
		if segment.Type != elf.PT_NOTE || segment.Filesz > maxNotes {
			continue
		}
		notes, err := io.ReadAll(segment.Open())
		if err != nil {
			continue
		}
		if id := parseBuildID(notes, f.ByteOrder.Uint32, max(segment.Align, 4)); id != "" {
			return id
		}
	}
	return ""
}

// parseBuildID searches notes: three numbers of 4 bytes (size of the name, size of the content, type), the name and the
// content, both padded.
func parseBuildID(notes []byte, number func([]byte) uint32, align uint64) string {
	const header, buildIDType, maxID = 12, 3, 64
	if align != 4 && align != 8 {
		return ""
	}
	for len(notes) >= header {
		name, size, kind := uint64(number(notes)), uint64(number(notes[4:])), number(notes[8:])
		notes = notes[header:]
		begin := (header+name+align-1)/align*align - header
		end := begin + size
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == buildIDType && name == 4 && bytes.HasPrefix(notes, []byte("GNU\x00")) && size > 0 && size <= maxID {
			return hex.EncodeToString(notes[begin:end])
		}
		notes = notes[min((end+align-1)/align*align, uint64(len(notes))):]
	}
	return ""
}

// goBuild adds what Go writes into a program.
func goBuild(all *list, build *debug.BuildInfo) {
	all.add(Program, "program_go", build.GoVersion)
	if build.Main.Path != "" {
		all.add(Program, "program_module", strings.TrimSuffix(build.Main.Path+"@"+build.Main.Version, "@"))
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision", "vcs.modified", "CGO_ENABLED", "GOAMD64", "-race", "-gcflags", "-tags":
			all.add(Program, "program_"+strings.TrimPrefix(setting.Key, "-"), setting.Value)
		}
	}
}

// maxLibraries bounds the libraries of a process.
const maxLibraries = 64

// libraries adds the build ID of each library that a process has loaded. A library is opened in the root directory of the process, which may
// be that of a container.
func libraries(all *list, p hostfs.Process) {
	program, _ := p.Executable() // unreadable: the mappings are too
	var paths []string
	err := p.Mappings(func(m hostfs.Mapping) {
		if path := string(m.Path); m.Executable && m.IsFile() && path != program && len(paths) < maxLibraries && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	})
	if err != nil {
		return
	}
	for _, path := range paths {
		if f, err := inputfile.Open(p.Path("root", path)); err == nil {
			all.add(Program, "library."+filepath.Base(path), buildID(f))
			_ = f.Close() // nothing was written
		}
	}
}

const (
	maxManifests = 20
	maxManifest  = 16 << 20
)

// manifestKeys are settings of Gramine that change performance, in today's spelling.
var manifestKeys = []string{
	"libos.check_invalid_pointers", "loader.log_level", "sgx.debug", "sgx.edmm_enable", "sgx.enable_stats", "sgx.enclave_size", "sgx.insecure__rpc_thread_num",
	"sgx.max_threads", "sgx.preheat_enclave", "sgx.profile.enable", "sgx.use_exinfo", "sys.brk.max_size", "sys.stack.size",
}

// manifests adds a hash and settings of each manifest of Gramine that an argument names: gramine-sgx NAME reads
// NAME.manifest.sgx, and gramine-direct reads NAME.manifest.
func (s Subject) manifests(all *list) {
	for _, arg := range s.Args[:min(len(s.Args), maxManifests)] {
		if arg == "" || strings.HasPrefix(arg, "-") || len(arg) > 1000 {
			continue
		}
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		for _, end := range []string{".manifest.sgx", ".manifest"} {
			if data, err := inputfile.Read(path+end, maxManifest); err == nil {
				sum := sha256.Sum256(data)
				name := "manifest." + filepath.Base(path) + end
				all.add(Program, name, "sha256:"+hex.EncodeToString(sum[:]))
				keysOf(all, name, data)
			}
		}
	}
}

// keysOf adds the settings of a manifest. It adds none if the manifest cannot be parsed; Gramine reports the error.
func keysOf(all *list, name string, source []byte) {
	m, err := manifest.Parse(source, manifest.Options{Name: name})
	if err != nil {
		return
	}
	for _, key := range manifestKeys {
		if v := m.Get(key); v.Set && v.Unknown == "" && v.Kind != manifest.Array && v.Kind != manifest.Table {
			all.add(Program, name+" "+key, v.Text)
		}
	}
}

// settings are environment variables that change performance and hold no secret.
var settings = []string{
	"MALLOC_ARENA_MAX", "MALLOC_CONF", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_PERTURB_", "MALLOC_CHECK_",
	"GLIBC_TUNABLES", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_BIND_NOW",
	"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "OMP_SCHEDULE", "KMP_AFFINITY", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOAMD64", "RUST_BACKTRACE", "TOKIO_WORKER_THREADS", "RAYON_NUM_THREADS", "UV_THREADPOOL_SIZE",
	"PYTHONHASHSEED", "PYTHONMALLOC", "PYTHONOPTIMIZE", "NODE_ENV",
	"SCONE_HEAP", "SCONE_STACK", "SCONE_MODE", "SCONE_QUEUES", "SCONE_SLOTS", "SCONE_SLOT_COUNT", "SCONE_ESPINS", "SCONE_SSPINS", "SCONE_SSLEEP",
	"SCONE_ETHREADS", "SCONE_STHREADS", "SCONE_LOG", "SCONE_FORK", "SCONE_ALLOW_DLOPEN", "SCONE_MPROTECT", "SCONE_SYSLIBS", "SCONE_VERSION",
	"SGX", "SGX_MODE", "SGX_DEBUG", "SGX_PRERELEASE", "GRAMINE_MODE", "OE_SIMULATION", "OCCLUM_LOG_LEVEL",
}

// named are the beginnings of variables of frameworks. Their values may be secrets, so only the names are kept.
var named = []string{"SCONE_", "SGX_", "GRAMINE_", "OE_", "OCCLUM_", "MALLOC_", "OMP_"}

// isSet is the value of a variable whose own value is not kept.
const isSet = "set (the value is not recorded)"

// maxVariables bounds the variables that are inspected.
const maxVariables = 10_000

// environment adds the settings among the variables. If a name occurs twice, the first counts, as for getenv(3).
func environment(all *list, environ []string) {
	seen := map[string]bool{}
	var found list
	for _, entry := range environ[:min(len(environ), maxVariables)] {
		name, value, _ := strings.Cut(entry, "=")
		if seen[name] || name == "" || text.Label(name) != name {
			continue
		}
		seen[name] = true
		if slices.Contains(settings, name) {
			if value == "" {
				value = `""`
			}
			found.add(Program, "env."+name, value)
		} else if slices.ContainsFunc(named, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			found.add(Program, "env."+name, isSet)
		}
	}
	slices.SortFunc(found, func(a, b Condition) int { return strings.Compare(a.Name, b.Name) })
	*all = append(*all, found...)
}

// OfProcess describes a process that runs: its file, arguments, directory and environment, as far as they may be read.
// In the first moments of a program the kernel does not show its arguments and environment yet. The program that has started it
// knows them.
func OfProcess(h Host, pid int) (Subject, error) {
	p := h.Proc.Process(pid)
	path, err := p.Executable()
	if err != nil {
		return Subject{}, fmt.Errorf("reading the conditions of process %d: %w", pid, err)
	}
	s := Subject{PID: pid, Loaded: true, Path: path}
	if _, err := os.Stat(path); err != nil { // in a container, or deleted
		s.Path = p.Path("exe")
	}
	s.Args, _ = p.Args(maxManifests)
	s.Dir, _ = p.Link("cwd")
	environ, _ := p.ReadWhole(1<<20, "environ")
	s.Environ = strings.Split(string(environ), "\x00")
	return s, nil
}

// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"slices"
	"strconv"
	"strings"
)

// Successor is a key that Gramine has replaced or removed.
type Successor struct {
	Old     string // a key, or a key with .* for any name below it
	New     string // "" if the key has none
	Since   string // the version of Gramine that deprecated it
	Gone    string // the first version that does not know it; "" while it is still accepted
	Refused string // the first version that refuses to start with it; "" is as for every key that a version does not know
	Note    string // note for its replacement
	convert func(Value) (string, bool)
}

// Successors are all keys that were replaced or removed since Gramine 1.0. The versions are those in which Gramine's
// sources (pal, libos, python/graminelibos) and Documentation/manifest-syntax.rst, "Deprecated options", change between the
// tags v1.0 and v1.9.
func Successors() []Successor {
	feature := func(on, off string) func(Value) (string, bool) {
		return func(v Value) (string, bool) {
			b, ok := v.Bool()
			if b {
				return on, ok
			}
			return off, ok
		}
	}
	optional, hardening := feature(`"required"`, `"unspecified"`), feature(`"required"`, `"disabled"`)
	return []Successor{
		{Old: "fs.experimental__enable_sysfs_topology", Since: "1.2", Gone: "1.5", Note: "the topology is always there"},
		{Old: "fs.mount.*", New: "fs.mounts", Since: "1.2", Gone: "1.5", Note: "one array of tables instead of a name for each mount"},
		{Old: "loader.argv0_override", New: "loader.argv", Since: "1.3", Gone: "1.3", Note: "loader.argv has all arguments"},
		{Old: "loader.debug_type", New: "loader.log_level", Since: "1.0", Gone: "1.0", Refused: "1.0", Note: "\"none\" stays, \"inline\" is \"debug\", \"file\" needs loader.log_file too"},
		{Old: "loader.entrypoint", New: "loader.entrypoint.uri", Since: "1.8", Gone: "1.9", convert: same},
		{Old: "loader.exec", New: "libos.entrypoint", Since: "1.0", Gone: "1.0", Refused: "1.0", Note: "the path in the file system of the application"},
		{Old: "loader.pal_internal_mem_size", Since: "1.4", Gone: "1.4", Note: "Gramine reserves what it needs"},
		{Old: "loader.preload", New: "loader.entrypoint", Since: "1.1", Gone: "1.2", convert: same},
		{Old: "sgx.allowed_files.*", New: "sgx.allowed_files", Since: "1.0", Gone: "1.2", Note: "one array instead of a name for each file"},
		{Old: "sgx.insecure__protected_files_key", New: "fs.insecure__keys.default", Since: "1.2", Gone: "1.5", convert: same},
		{Old: "sgx.nonpie_binary", Since: "1.5", Gone: "1.5", Note: "it has no effect any more"},
		{Old: "sgx.print_stats", New: "sgx.enable_stats", Since: "1.0", Gone: "1.0", convert: boolean},
		{Old: "sgx.protected_files", New: "fs.mounts", Since: "1.2", Gone: "1.5", Note: "mounts with type = \"encrypted\""},
		{Old: "sgx.protected_files.*", New: "fs.mounts", Since: "1.0", Gone: "1.2", Note: "mounts with type = \"encrypted\""},
		{Old: "sgx.protected_mrenclave_files", New: "fs.mounts", Since: "1.2", Gone: "1.5", Note: "mounts with type = \"encrypted\" and key_name = \"_sgx_mrenclave\""},
		{Old: "sgx.protected_mrsigner_files", New: "fs.mounts", Since: "1.2", Gone: "1.5", Note: "mounts with type = \"encrypted\" and key_name = \"_sgx_mrsigner\""},
		{Old: "sgx.ra_client_linkable", Since: "1.9", Gone: "1.9", Note: "EPID attestation was removed"},
		{Old: "sgx.ra_client_spid", Since: "1.9", Gone: "1.9", Note: "EPID attestation was removed"},
		{Old: "sgx.require_amx", New: "sgx.cpu_features.amx", Since: "1.6", Gone: "1.8", convert: optional},
		{Old: "sgx.require_avx", New: "sgx.cpu_features.avx", Since: "1.6", Gone: "1.8", convert: optional},
		{Old: "sgx.require_avx512", New: "sgx.cpu_features.avx512", Since: "1.6", Gone: "1.8", convert: optional},
		{Old: "sgx.require_exinfo", New: "sgx.use_exinfo", Since: "1.6", Gone: "1.8", convert: boolean},
		{Old: "sgx.require_mpx", New: "sgx.cpu_features.mpx", Since: "1.6", Gone: "1.8", convert: hardening},
		{Old: "sgx.require_pkru", New: "sgx.cpu_features.pkru", Since: "1.6", Gone: "1.8", convert: hardening},
		{Old: "sgx.rpc_thread_num", New: "sgx.insecure__rpc_thread_num", Since: "1.3", Gone: "1.3", convert: same},
		{Old: "sgx.sigfile", Since: "1.0", Gone: "1.0", Refused: "1.0", Note: "gramine-sgx reads the signature beside the manifest"},
		{Old: "sgx.thread_num", New: "sgx.max_threads", Since: "1.4", Gone: "1.5", convert: same},
		{Old: "sgx.trusted_files.*", New: "sgx.trusted_files", Since: "1.0", Gone: "1.2", Note: "one array instead of a name for each file"},
	}
}

// checked is the first version whose gramine-manifest refuses a manifest with a key that it does not know, unless it runs with
// --no-check (python/gramine-manifest, manifest_check.py).
const checked = "1.7"

// Checks reports whether gramine-manifest of all of these versions refuses keys that it does not know.
func (v *Versions) Checks() bool { return v.Since(checked) }

// RefusedFrom returns the first version that refuses a manifest with this key, or "" while it is still accepted.
func (s Successor) RefusedFrom() string {
	switch {
	case s.Refused != "" || s.Gone == "":
		return s.Refused
	case minor(s.Gone) > minor(checked):
		return s.Gone
	}
	return checked
}

// same keeps a value.
func same(v Value) (string, bool) { return "", v.Set }

// boolean spells 0 and 1 as false and true, which Gramine requires from 1.2 on.
func boolean(v Value) (string, bool) {
	if on, ok := v.Bool(); ok && v.Kind != Bool {
		return strconv.FormatBool(on), true
	}
	return same(v)
}

// olderOf returns the older spellings of a key whose values mean the same.
func olderOf(key string) []string {
	var all []string
	for _, s := range Successors() {
		if s.New == key && s.convert != nil && !strings.HasPrefix(s.New, "sgx.cpu_features.") {
			all = append(all, s.Old)
		}
	}
	return all
}

// Introduced returns the version of Gramine that introduced a key, or "" if 1.0 has it or the key is not known here. The versions are
// those of Gramine's sources, as for [Successors].
func Introduced(key string) string {
	switch key {
	case "loader.entrypoint":
		return "1.1"
	case "sgx.vtune_profile":
		return "1.2"
	case "loader.argv", "sgx.insecure__rpc_thread_num", "sys.enable_extra_runtime_domain_names_conf":
		return "1.3"
	case "sgx.edmm_enable", "sgx.max_threads":
		return "1.4"
	case "sys.disallow_subprocesses", "sys.experimental__enable_flock":
		return "1.5"
	case "sgx.cpu_features.amx", "sgx.cpu_features.avx", "sgx.cpu_features.avx512", "sgx.cpu_features.mpx", "sgx.cpu_features.pkru", "sgx.use_exinfo":
		return "1.6"
	case "sgx.insecure__allow_memfaults_without_exinfo":
		return "1.7"
	case "loader.entrypoint.uri", "loader.entrypoint.sha256", "sys.fds.limit", "sys.debug__mock_syscalls":
		return "1.8"
	}
	return ""
}

// minor is the part of a version after "1.".
func minor(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "1."))
	if err != nil {
		return 0
	}
	return n
}

// TooOld returns why Gramine does not know the key of a change, or "". If the version is not known, it follows from the manifest, if that
// has keys that are gone in the versions that know the key.
func TooOld(m *Manifest, c Change, v *Versions) string {
	needs := Introduced(c.Key)
	if needs == "" || m.Get(c.Key).Set && c.From == "" {
		return ""
	}
	if v.Before(needs) {
		return fmt.Sprintf("Gramine %s (%s) does not know %s: that needs %s", v, v.Source, c.Key, needs) + instead(c)
	}
	if c.From != "" || v.Since(needs) {
		return ""
	}
	for _, d := range m.Deprecated() {
		if d.Gone == "" || minor(d.Gone) > minor(needs) || d.New != "" && m.Get(d.New).Key == d.New && m.Get(d.New).Set {
			continue
		}
		return fmt.Sprintf("%s: Gramine does not know %s from %s on, and %s needs %s: replace the older keys first (rule deprecated-keys)", m.at(d.Lines[0]), shown(d.Key), d.Gone, c.Key, needs) + instead(c)
	}
	return ""
}

// instead names the older spelling of a change, if there is one.
func instead(c Change) string {
	if older := olderOf(c.Key); len(older) > 0 && c.From == "" {
		return ", or set " + older[0] + " = " + c.Value
	}
	return ""
}

// Found is a deprecated key in a manifest.
type Found struct {
	Successor
	Key     string // as it is written
	Lines   []int  // where it is
	InBlock bool   // all of these lines are in blocks of a template, which may be for other versions
	// Change replaces it. It is empty if a person must do that.
	Change Change
}

// Deprecated returns the deprecated keys of the manifest, in the order of their lines.
func (m *Manifest) Deprecated() []Found {
	var all []Found
	at := make(map[string]int)
	for i, e := range m.entries {
		s, ok := successor(e.key)
		if !ok || e.table >= 0 || s.Old == "loader.entrypoint" && e.value.Kind == Table {
			continue
		}
		if s.Old == "sgx.protected_files" && e.value.Kind != Array {
			continue
		}
		if found, seen := at[s.Old]; seen {
			all[found].Lines = append(all[found].Lines, m.line(e.start))
			all[found].InBlock = all[found].InBlock && m.inBlock(e.start) != nil
			continue
		}
		at[s.Old] = len(all)
		f := Found{Successor: s, Key: e.key, Lines: []int{m.line(e.start)}, InBlock: m.inBlock(e.start) != nil}
		if s.convert != nil && !f.InBlock {
			if value, ok := s.convert(m.value(i)); ok && m.find(s.New) < 0 {
				f.Change = Change{Key: s.New, From: e.key, Value: value}
			}
		}
		all = append(all, f)
	}
	return all
}

var successors = Successors()

// successor returns the entry of a key in the list.
func successor(key string) (Successor, bool) {
	i := slices.IndexFunc(successors, func(s Successor) bool {
		above, any := strings.CutSuffix(s.Old, ".*")
		return key == s.Old || any && strings.HasPrefix(key, above+".")
	})
	if i < 0 {
		return Successor{}, false
	}
	return successors[i], true
}

// environment matches the name of a variable that needs no quotes in a key.
var environment = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Env returns what the manifest says of an environment variable of the application: a string, or a table with
// passthrough = true.
func (m *Manifest) Env(name string) Value {
	if !environment().MatchString(name) {
		return Value{Key: name}
	}
	if v := m.Get("loader.env." + name); v.Set {
		return v
	}
	return m.Get("loader.env." + name + ".passthrough")
}

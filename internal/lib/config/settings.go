// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

const (
	// maxSettings is the maximum number of settings of a workload. Each is a series.
	maxSettings = 48
	noSettings  = "off"
)

// tuning are the environment variables that are settings unless others are configured. They change how fast a program is,
// and hold no secrets: those of memory allocators, of thread pools, and of SCONE, Occlum, Open Enclave and EGo.
var tuning = []string{
	"GLIBC_TUNABLES", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "MALLOC_ARENA_MAX", "MKL_NUM_THREADS", "OCCLUM_LOG_LEVEL",
	"OCCLUM_RELEASE_ENCLAVE", "OE_SIMULATION", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS",
	"SCONE_HEAP", "SCONE_MODE", "SCONE_QUEUES", "SCONE_SLOTS", "SCONE_SSLEEP", "SCONE_SSPINS", "SCONE_STACK",
	"TOKIO_WORKER_THREADS", "UV_THREADPOOL_SIZE",
}

// enclaveKeys are the keys of Gramine's manifests that are settings unless others are configured. Gramine's performance guide
// and its manifest syntax say that they change how fast a program is.
var enclaveKeys = []string{
	"libos.check_invalid_pointers", "loader.log_level", "sgx.debug", "sgx.edmm_enable", "sgx.enable_stats", "sgx.enclave_size",
	"sgx.insecure__rpc_thread_num", "sgx.max_threads", "sgx.preheat_enclave", "sgx.profile.enable", "sys.stack.size",
}

func workloadSettingsKey() *key {
	return &key{
		name: "workloads.settings", commands: Up | Agent, kind: "name,...", sep: ",", flagSep: true,
		usage:   "environment variables of workloads, and keys of Gramine's manifests, to export as settings, for \"teescope correlate --server\"; off exports none",
		defText: fmt.Sprintf("%d variables of allocators, thread pools and enclave runtimes, and %d keys of manifests", len(tuning), len(enclaveKeys)),
		def:     func(Host) []string { return slices.Concat(tuning, enclaveKeys) },
		set: func(c *Config, names []string) error {
			c.Workloads.Settings = nil
			if slices.Equal(names, []string{noSettings}) {
				return nil
			}
			for _, name := range names {
				if err := checkSetting(name); err != nil {
					return err
				}
			}
			if len(names) > maxSettings {
				return fmt.Errorf("%d names are too many: the maximum is %d", len(names), maxSettings)
			}
			c.Workloads.Settings = names
			return nil
		},
		get: func(c *Config) []string {
			if len(c.Workloads.Settings) == 0 {
				return []string{noSettings}
			}
			return c.Workloads.Settings
		},
	}
}

var (
	variable = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	// manifestKey allows no key that holds an environment variable, a key of encrypted files or a name of a file.
	manifestKey = lazy.Regexp(`^(libos|sgx|sys|loader\.log_level)(\.[a-z][a-z0-9_]{0,63}){0,3}$`)
	secret      = lazy.Regexp(`(?i)passw|passphrase|secret|token|credential|bearer|cookie|(api|access|private|ssh|encryption|signing)key|(^|_)(key|auth|pin|pass|pw|pwd|jwt|url|uri|dsn)($|_)`)
)

// IsManifestKey reports whether a setting of workloads.settings is a key of manifests. Others are environment variables.
func IsManifestKey(setting string) bool { return strings.Contains(setting, ".") }

// checkSetting refuses names of variables that usually hold secrets, because anyone who can query sees the values. URLs of
// databases and message brokers hold passwords.
func checkSetting(name string) error {
	switch {
	case IsManifestKey(name) && !manifestKey().MatchString(name):
		return fmt.Errorf("%q is not a key of Gramine's manifests that can be a setting: use loader.log_level, or one that begins with libos, sgx or sys", strings.ToValidUTF8(name, "?"))
	case !IsManifestKey(name) && !variable().MatchString(name):
		return fmt.Errorf("%q is not the name of an environment variable: use for example GOMAXPROCS", strings.ToValidUTF8(name, "?"))
	case secret().MatchString(name):
		return fmt.Errorf("%q looks like the name of a secret, and everyone who can query would see its value", name)
	}
	return nil
}

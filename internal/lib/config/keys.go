// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/watch"
)

// key is one configuration key. Help, documentation and validation are generated from it.
type key struct {
	name     string // dotted; nested in YAML; also the flag, and TEESCOPE_NAME in the environment
	commands Command
	kind     string // the form of a value, for --help
	usage    string
	sep      string                        // separates a list's values in the environment and flags; else empty
	flagSep  bool                          // whether a flag's value is split too; otherwise the flag is repeated
	defText  string                        // the default in --help, if it depends on the host
	def      func(Host) []string           // the default values, as written by a user
	set      func(*Config, []string) error // checks and sets
	get      func(*Config) []string        // the inverse of set

	// An item of a list may be a mapping in the file. fields are its keys, and item returns the item as text.
	fields []string
	item   func(map[string]string) (string, error)
}

func (k *key) env() string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(k.name))
}

func (k *key) list() bool { return k.sep != "" }

// envPrefix is the prefix of all environment variables of teescope.
const envPrefix = "TEESCOPE_"

// configKey names the configuration file. It is a flag, but not a key of the file.
const configKey = "config"

// Config is a checked configuration.
type Config struct {
	Listen string // host:port, or unix:PATH
	// WebConfigFile configures TLS and basic authentication, in the format of the Prometheus exporter toolkit.
	WebConfigFile string
	Web           Web
	ExternalURL   string        // without a slash at its end; empty for the listening address
	DataDir       string        // absolute
	Interval      time.Duration // between two scrapes
	Retention     Retention
	Targets       []string // host:port, or https://host:port
	// TargetsConfigFiles configure the HTTP clients for Targets and for agents that are found: FILE or PATTERN=FILE, in the
	// format of Prometheus' http_config.
	TargetsConfigFiles []string
	Discovery          []Discovery
	// DiscoveryConfigFile configures the HTTP client for sources of Discovery, in the same format.
	DiscoveryConfigFile string
	Kubernetes          Kubernetes
	RemoteWrite         RemoteWrite
	Query               Query
	Scrape              []Endpoint
	// ScrapeConfigFiles are the same for endpoints, as NAME=FILE.
	ScrapeConfigFiles []string
	Workloads         Workloads
	Watch             []watch.Rule
	Syscalls          Syscalls
	Overhead          Overhead
	Probes            Probes
	Control           Control
	Profiles          Profiles
	Transitions       Transitions
	Memory            Memory
	Analysis          Analysis
	Rules             Rules
	Alerting          Alerting
	// AnyPIDNamespace lets an agent start where it does not see all processes of the host.
	AnyPIDNamespace bool
	Sandbox         Sandbox
	Log             Log
	// Ignored are the environment variables that look like keys and that Kubernetes has set for a Service.
	Ignored []string

	origins map[string]origin
}

// Retention bounds what the database keeps. The stricter of the two limits applies.
type Retention struct {
	Time time.Duration
	Size int64 // bytes; 0 is unlimited
}

// Workloads bounds the label workload, and names the settings of workloads that are exported.
type Workloads struct {
	Max      int
	Settings []string // names of environment variables
}

// Syscalls selects what is measured for system calls.
type Syscalls struct {
	Time bool // also measure the time spent in each
}

// Overhead bounds the cost of watching.
type Overhead struct {
	Budget float64 // fraction of the machine's CPU time, 0 to 1
}

// Memory bounds the memory of the process.
type Memory struct {
	Limit int64 // bytes; 0 is unlimited
}

// Log configures how the program logs.
type Log struct {
	Level  slog.Level
	Format string // "text" or "json"
}

// keys returns the table, in the order of the documentation. The keys of a section are in its file.
func keys() []*key {
	return slices.Concat(
		webKeys(), storageKeys(), targetKeys(), discoveryKeys(), scrapeKeys(), watchKeys(), probeKeys(), transitionKeys(), controlKeys(),
		profileKeys(), memoryKeys(), analysisKeys(), remoteWriteKeys(), queryKeys(), rulesKeys(), alertingKeys(), sandboxKeys(), logKeys(),
	)
}

func storageKeys() []*key {
	return []*key{
		dataDirKey(),
		{
			name: "interval", commands: Up | Server, kind: "duration",
			usage: "time between two scrapes",
			def:   constant("5s"),
			set: one(func(c *Config, s string) (err error) {
				c.Interval, err = parseDuration(s, 100*time.Millisecond, 2*time.Minute)
				return err
			}),
			get: func(c *Config) []string { return []string{formatDuration(c.Interval)} },
		},
		{
			name: "retention.time", commands: Up | Server, kind: "duration",
			usage: "how long the database keeps samples",
			def:   constant("15d"),
			set: one(func(c *Config, s string) (err error) {
				c.Retention.Time, err = parseDuration(s, time.Hour, 100*365*24*time.Hour)
				return err
			}),
			get: func(c *Config) []string { return []string{formatDuration(c.Retention.Time)} },
		},
		{
			name: "retention.size", commands: Up | Server, kind: "size",
			usage: "maximum size of the database; 0 means no limit",
			def:   constant("2GiB"),
			set: one(func(c *Config, s string) (err error) {
				c.Retention.Size, err = parseSize(s, 16<<20)
				return err
			}),
			get: func(c *Config) []string { return []string{formatSize(c.Retention.Size)} },
		},
	}
}

func watchKeys() []*key {
	return []*key{
		{
			name: "workloads.max", commands: Up | Agent, kind: "number",
			usage: "maximum number of workloads with series of their own; the others are added up as \"other\"",
			def:   constant("128"),
			set: one(func(c *Config, s string) (err error) {
				c.Workloads.Max, err = parseInt(s, 1, 1024)
				return err
			}),
			get: func(c *Config) []string { return []string{strconv.Itoa(c.Workloads.Max)} },
		},
		workloadSettingsKey(),
		{
			name: "watch", commands: Up | Agent, kind: "rule", sep: ";",
			usage: "also measure each process that matches " + watch.Forms + "; may be repeated",
			def:   none,
			set:   setWatch,
			get:   watchTexts,
		},
		{
			name: "syscalls.time", commands: Up | Agent, kind: "bool",
			usage: "also measure the time spent in each system call (costs more)",
			def:   constant("false"),
			set: one(func(c *Config, s string) (err error) {
				c.Syscalls.Time, err = parseBool(s)
				return err
			}),
			get: func(c *Config) []string { return []string{strconv.FormatBool(c.Syscalls.Time)} },
		},
		{
			name: "overhead.budget", commands: Up | Agent, kind: "percent",
			usage: "share of the machine's CPU time that measuring may take; above it frequent events are sampled; 100% means no limit",
			def:   constant("1%"),
			set: one(func(c *Config, s string) (err error) {
				c.Overhead.Budget, err = parsePercent(s, 0.01, 100)
				return err
			}),
			get: func(c *Config) []string { return []string{formatPercent(c.Overhead.Budget)} },
		},
	}
}

func memoryKeys() []*key {
	return []*key{
		{
			name: "memory.limit", commands: Up | Server, kind: "size",
			usage: "memory limit of the process that stores; near it queries and new series are refused; 0 means no limit",
			def:   constant("0"),
			set: one(func(c *Config, s string) (err error) {
				c.Memory.Limit, err = parseSize(s, 64<<20)
				return err
			}),
			get: func(c *Config) []string { return []string{formatSize(c.Memory.Limit)} },
		},
	}
}

func dataDirKey() *key {
	return &key{
		name: "data-dir", commands: Up | Server, kind: "directory",
		usage: "directory of the database", defText: "/var/lib/teescope for root, else ~/.local/state/teescope",
		def: func(h Host) []string {
			switch {
			case h.UID == 0:
				return []string{"/var/lib/teescope"}
			case h.StateHome != "" && filepath.IsAbs(h.StateHome):
				return []string{filepath.Join(h.StateHome, "teescope")}
			case h.Home != "":
				return []string{filepath.Join(h.Home, ".local/state/teescope")}
			}
			return []string{"/var/lib/teescope"} // for a service user without a home directory
		},
		set: one(func(c *Config, s string) error {
			abs, err := filepath.Abs(s)
			if err != nil {
				return fmt.Errorf("%q cannot be made absolute: %w", s, err)
			}
			c.DataDir = abs
			return nil
		}),
		get: func(c *Config) []string { return []string{c.DataDir} },
	}
}

func logKeys() []*key { return []*key{logLevelKey(), logFormatKey()} }

func logLevelKey() *key {
	levels := []string{"debug", "info", "warn", "error"}
	return &key{
		name: "log.level", commands: Any, kind: "level",
		usage: "least severe level that is logged: debug, info, warn or error",
		def:   constant("info"),
		set: one(func(c *Config, s string) error {
			if err := checkChoice(s, levels); err != nil {
				return err
			}
			return c.Log.Level.UnmarshalText([]byte(s))
		}),
		get: func(c *Config) []string { return []string{strings.ToLower(c.Log.Level.String())} },
	}
}

func logFormatKey() *key {
	formats := []string{"text", "json"}
	return &key{
		name: "log.format", commands: Any, kind: "format",
		usage: "text or json",
		def:   constant("text"),
		set: one(func(c *Config, s string) error {
			if err := checkChoice(s, formats); err != nil {
				return err
			}
			c.Log.Format = s
			return nil
		}),
		get: func(c *Config) []string { return []string{c.Log.Format} },
	}
}

func constant(s string) func(Host) []string { return func(Host) []string { return []string{s} } }

func none(Host) []string { return nil }

// one adapts a setter of a single value. The loaders always pass it exactly one value.
func one(set func(*Config, string) error) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		if len(values) != 1 {
			return fmt.Errorf("takes one value, got %d", len(values))
		}
		if strings.TrimSpace(values[0]) == "" {
			return fmt.Errorf("has no value")
		}
		return set(c, values[0])
	}
}

func setWatch(c *Config, values []string) error {
	var errs []error
	rules := make([]watch.Rule, 0, len(values))
	for _, v := range values {
		rule, err := watch.Parse(v)
		errs = append(errs, err)
		rules = append(rules, rule)
	}
	c.Watch = rules
	return errors.Join(errs...)
}

func watchTexts(c *Config) []string {
	texts := make([]string, len(c.Watch))
	for i, r := range c.Watch {
		texts[i] = r.String()
	}
	return texts
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Sandbox configures what confines the process after its start.
type Sandbox struct {
	Required bool   // the start fails when a mechanism is missing
	User     string // a name, UID or UID:GID
}

func sandboxKeys() []*key { return []*key{pidNamespaceKey(), sandboxKey(), userKey()} }

func sandboxKey() *key {
	modes := []string{"available", "required"}
	return &key{
		name: "sandbox", commands: Any, kind: "mode",
		usage: "confine the process by what this machine offers (available), or do not start without all of it (required)",
		def:   constant("available"),
		set: one(func(c *Config, s string) error {
			if err := checkChoice(s, modes); err != nil {
				return err
			}
			c.Sandbox.Required = s == "required"
			return nil
		}),
		get: func(c *Config) []string {
			if c.Sandbox.Required {
				return []string{"required"}
			}
			return []string{"available"}
		},
	}
}

func pidNamespaceKey() *key {
	modes := []string{"host", "any"}
	return &key{
		name: "pid-namespace", commands: Up | Agent, kind: "namespace",
		usage: "start only in the PID namespace of the host, where all processes are visible (host), or in any",
		def:   constant("host"),
		set: one(func(c *Config, s string) error {
			if err := checkChoice(s, modes); err != nil {
				return err
			}
			c.AnyPIDNamespace = s == "any"
			return nil
		}),
		get: func(c *Config) []string {
			if c.AnyPIDNamespace {
				return []string{"any"}
			}
			return []string{"host"}
		},
	}
}

// The default needs no entry in the list of users. It is in a range that neither Debian nor systemd assigns, and below
// 65536, so that it exists in containers with their own user IDs.
func userKey() *key {
	return &key{
		name: "user", commands: Any, kind: "user",
		usage: "the user to change to after a start as root: a name, UID or UID:GID; root means no change",
		def:   constant("65521"),
		set: one(func(c *Config, s string) error {
			if err := checkUser(s); err != nil {
				return err
			}
			c.Sandbox.User = s
			return nil
		}),
		get: func(c *Config) []string { return []string{c.Sandbox.User} },
	}
}

// checkUser checks the form only: whether a name exists depends on the machine.
func checkUser(s string) error {
	user, group, paired := strings.Cut(s, ":")
	number := func(s string) bool {
		n, err := strconv.ParseUint(s, 10, 32)
		return err == nil && n < 1<<32-1 // the highest number means "unchanged" in setresuid(2)
	}
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}\$?$`)
	if paired && number(user) && number(group) || !paired && (number(s) || name.MatchString(s)) {
		return nil
	}
	return fmt.Errorf("%q is not a user: use a name, UID or UID:GID, for example 65521", s)
}

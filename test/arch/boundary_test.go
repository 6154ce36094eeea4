// SPDX-License-Identifier: Apache-2.0

package arch

// boundary is the folder of the backend that counts crossings of the enclave boundary.
const boundary = "internal/agent/tee/sgx/boundary"

// boundaryRules are the allowed imports within that folder.
func boundaryRules() []importRule {
	rooms := func(prefix string, names ...string) []string {
		for i, name := range names {
			names[i] = prefix + boundary + "/" + name
		}
		return names
	}
	values := []string{"window", "process", "count", "host", "executable", "boundarytest"}
	return []importRule{
		{
			why:   "mechanisms at the enclave boundary share values, and know neither each other nor the package that composes them",
			from:  rooms("", "breakpoint", "functions", "gramine"),
			never: []string{module + "/" + boundary},
			but:   rooms(module+"/", append([]string{}, values...)...),
		},
		{
			why:   "what mechanisms at the enclave boundary share knows no mechanism",
			from:  rooms("", append([]string{}, values...)...),
			never: []string{module + "/" + boundary},
			but:   rooms(module+"/", append([]string{}, values...)...),
		},
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/advise"
)

// mariaDB is MariaDB's published throughput (gramineproject/gramine issue 853): sysbench, transactions a second, rounded.
const mariaDB = `1 1472 1221 802
2 2894 2395 1408
4 5793 4483 2873
8 11036 5936 4294
16 22239 5936 5898
32 43167 5359 3048
64 - - 1550
`

// SGX costs most of what is added up to 4 threads, the library OS from 8 on, where it stops scaling. From 16 to 32 threads it
// is the enclave that gets slower.
func TestMariaDB(t *testing.T) {
	r := advise.Evaluate(given{scaling: mariaDB}.facts(t), All())
	by := make(map[string]advise.Advice)
	for _, a := range r.Advice {
		by[a.Rule] = a
	}
	if len(by) != 3 || r.Advice[0].Rule != "sgx-limit" {
		t.Fatalf("%+v", r.Advice)
	}
	if want := "With 64 it loses 74 %, and gramine-direct was not measured there."; !strings.HasSuffix(by["sgx-limit"].Why, want) {
		t.Errorf("%q does not end with %q", by["sgx-limit"].Why, want)
	}
	for rule, want := range map[string]string{
		"library-os-limit": "From 4 to 8 threads the native throughput grows by 91 %, and that of gramine-direct by 32 %",
		"sgx-limit":        "From 16 to 32 threads SGX loses 48 % of its throughput, and gramine-direct 10 %",
		"throughput-split": "Threads 1 to 4: SGX adds more. Threads 8 to 32: the library OS adds more. At 16, where SGX is fastest, the library OS adds 99 % of both, and SGX 1 %.",
	} {
		if !strings.Contains(by[rule].Why, want) {
			t.Errorf("%s: %q is not in %q", rule, want, by[rule].Why)
		}
	}
	// Up to 16 threads SGX still gets faster, so the advice about the library OS does not forbid what that about SGX
	// requests.
	if !strings.Contains(by["library-os-limit"].Do[0], "instead of using more than 16 threads in one") || !strings.Contains(by["library-os-limit"].Risk, "EPC") {
		t.Errorf("%+v", by["library-os-limit"])
	}
	if !strings.Contains(by["sgx-limit"].Do[0], "limit the application to 16 threads that work at once: against 32 that was 94 % more throughput") {
		t.Error(by["sgx-limit"].Do)
	}
	// 1e6/1221 - 1e6/1472 and so on, computed by hand, in microseconds. 64 threads cannot be split.
	want := []float64{139.7, 427.9, 144.0, 585.4, 201.8, 500.0, 622.8, 515.4, 1976.0, 17.4, 5230.0, 4527.4}
	split := by["throughput-split"].Seen
	if len(split) != len(want) {
		t.Fatalf("%d figures: %+v", len(split), split)
	}
	for i, s := range split {
		if math.Abs(s.Value*1e6-want[i]) > 0.1 {
			t.Errorf("%s is %.1f us, want %.1f", s.What, s.Value*1e6, want[i])
		}
	}
}

// Where noise decides which of two adds more, the rows are counted.
func TestManyRangesAreCounted(t *testing.T) {
	table := ""
	for i := range 9 {
		table += fmt.Sprintf("%d 1000 900 %d\n", i+1, []int{880, 500}[i%2])
	}
	a := advise.Evaluate(given{scaling: table}.facts(t), All()).Advice
	at := slices.IndexFunc(a, func(a advise.Advice) bool { return a.Rule == "throughput-split" })
	if at < 0 || !strings.Contains(a[at].Why, "SGX adds more in 4 rows, and the library OS in 5.") {
		t.Errorf("%+v", a)
	}
}

// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// edmmShare is the least share of OCALLs that add or remove enclave pages. Proposed.
const edmmShare = 0.10

func edmmCalls() advise.Rule {
	return advise.Rule{
		ID: "edmm-calls", Title: "adding and removing enclave pages takes many exits", Section: sectionSyntax + "EDMM",
		Needs:  [][]advise.Input{{advise.Manifest, advise.Calls}},
		Signal: "share of `sgx_ocall_edmm_*` among the OCALLs of a profile, with `sgx.edmm_enable`", Threshold: "10 %",
		Source: "proposed; naive EDMM is up to 58 % slower (arXiv 2504.16251)", Advice: "EDMM off, or an allocator that keeps memory",
		NotWhen: []string{"the profile is of the start, when the heap grows once"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if !isTrue(f.Manifest, keyEDMM) {
				return nil
			}
			part, figures, found := share(f, advise.Calls, "share of OCALLs that change pages", edmmShare, func(name string) bool { return strings.Contains(name, "ocall_edmm_") })
			if !found {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the OCALLs change pages of the running enclave, as memory is allocated and freed.", 100*part))
			a.Seen = append(slices.Clone(figures), setting(f.Manifest, f.Manifest.Get(keyEDMM), "false"))
			a.Do = []string{"keep freed memory in the application: loader.env.MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ of Glibc, or a pool", "or turn EDMM off and give the enclave the size that it needs (sgx.enclave_size)"}
			a.Changes, a.Choice, a.Risk = set(keyEDMM, "false"), true, "the whole enclave is committed at the start, which takes longer, and sgx.enclave_size and sgx.max_threads become limits"
			if n, ok := threads(f.Manifest); ok && n < leastThreads {
				a.Do = append(a.Do, fmt.Sprintf("without EDMM sgx.max_threads takes 3 slots more than the application has threads, at least %d", leastThreads))
				a.Changes = append(a.Changes, set(keyThreads, strconv.Itoa(leastThreads))...)
			}
			return a
		},
	}
}

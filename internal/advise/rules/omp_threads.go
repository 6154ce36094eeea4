// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"path"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

// parallel maps the names of libraries, without versions, to the environment variable that sets their number of
// threads.
func parallel() map[string]string {
	return map[string]string{"libgomp.so": "OMP_NUM_THREADS", "libomp.so": "OMP_NUM_THREADS", "libiomp5.so": "OMP_NUM_THREADS", "libmkl_rt.so": "MKL_NUM_THREADS"}
}

func ompThreads() advise.Rule {
	return advise.Rule{
		ID: "omp-threads", Title: "the number of OpenMP or MKL threads is not set", Section: sectionOther,
		Needs:  [][]advise.Input{{advise.Manifest}},
		Signal: "libgomp, libomp, libiomp5 or libmkl_rt among the trusted files, and no thread count in `loader.env`", Threshold: "any", Source: guide + ": an application may determine the number of CPUs incorrectly",
		Advice: "loader.env.OMP_NUM_THREADS or MKL_NUM_THREADS", NotWhen: []string{"the library is trusted but not used", "the application sets the number itself"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if isTrue(f.Manifest, "loader.insecure__use_host_env") {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "Gramine passes no environment variable of the host to the application. Without a number, the library detects the number of CPUs itself, which may be wrong.")
			wanted := make(map[string]bool)
			for _, file := range f.Manifest.TrustedFiles() {
				name := path.Base(file.URI)
				for library, variable := range parallel() {
					if name != library && !strings.HasPrefix(name, library+".") || wanted[variable] || f.Manifest.Env(variable).Set {
						continue
					}
					wanted[variable] = true
					a.Seen = append(a.Seen, advise.Seen{What: "trusted file", Text: name, Source: at(f.Manifest.Name, file.Line), Line: file.Line})
				}
			}
			if len(a.Seen) == 0 {
				return nil
			}
			cpus, known := f.Machine.CPUs()
			for _, variable := range []string{"MKL_NUM_THREADS", "OMP_NUM_THREADS"} {
				if !wanted[variable] {
					continue
				}
				a.Do = append(a.Do, "set loader.env."+variable+" to the number of threads that is fastest, at most that of cores")
				if known {
					a.Changes = append(a.Changes, set("loader.env."+variable, fmt.Sprintf("%q", fmt.Sprint(cpus)))...)
				}
			}
			if known {
				a.Seen = append(a.Seen, seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online")))
			}
			a.Choice = true
			return a
		},
	}
}

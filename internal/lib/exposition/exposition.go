// SPDX-License-Identifier: Apache-2.0

// Package exposition reads the text that an agent answers on /metrics. It does not depend on the metrics, and makes no
// requests.
package exposition

import (
	"bytes"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prom "github.com/prometheus/common/model"
)

// Accept is the value of the header Accept that requests the format that Parse reads.
const Accept = "text/plain;version=0.0.4"

// Parse parses the text format of Prometheus, by the name of the family. It recovers from a panic in expfmt (v0.71.0), so
// that no answer can end the program. expfmt dereferences nil in startLabelName when "{}" follows a line of HELP instead of
// a metric. The fuzz test found it.
func Parse(data []byte) (families map[string]*dto.MetricFamily, err error) {
	defer func() {
		if p := recover(); p != nil {
			families, err = nil, fmt.Errorf("the parser failed: %v", p)
		}
	}()
	parser := expfmt.NewTextParser(prom.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(data))
}

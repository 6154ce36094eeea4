// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/teescope/teescope/internal/lib/inputfile"
)

const (
	// PlanFile is the name of the file in the directory of a sweep that has its plan as JSON.
	PlanFile = "sweep.json"
	// MaxPlan bounds that file in bytes.
	MaxPlan = 1 << 20
)

// Setting is a setting of a sweep with its values.
type Setting struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Settings reads the settings of the sweep in a directory, with their values in the order in which the user named them.
func Settings(dir string) ([]Setting, error) {
	var plan struct{ Settings []Setting }
	name := filepath.Join(dir, PlanFile)
	text, err := inputfile.Read(name, MaxPlan)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan of the sweep %s: %w", name, err)
	}
	return plan.Settings, nil
}

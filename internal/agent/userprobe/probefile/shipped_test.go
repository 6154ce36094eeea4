// SPDX-License-Identifier: Apache-2.0

package probefile

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShippedFiles reads the files of deploy/probes, and compares the metrics that documents, alerts and runbooks ask for with theirs.
func TestShippedFiles(t *testing.T) {
	const top = "../../../../"
	families := map[string]bool{}
	for _, file := range matching(t, top+"deploy/probes/*.yaml") {
		probes, err := Read(file)
		if err != nil || len(probes) == 0 {
			t.Errorf("%s has %d probes, and the error %v", file, len(probes), err)
		}
		for _, p := range probes {
			families[p.Family()] = true
		}
	}
	asked := 0
	for _, file := range append(matching(t, top+"docs/*/*.md"), matching(t, top+"rules/*.yaml")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`teescope_user_(?:cuda|attestation)_\w+`).FindAllString(string(text), -1) {
			asked++
			base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
			if !families[name] && !families[base] {
				t.Errorf("%s asks for %s, which no probe has", file, name)
			}
		}
	}
	if asked < 10 {
		t.Errorf("only %d queries were found", asked)
	}
}

func matching(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s matches %d files, %v", pattern, len(files), err)
	}
	return files
}

// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

// Annotators lists the systems that annotations can be written for.
func Annotators() []string { return []string{"github", "gitlab"} }

// Annotate writes the failures for a system: workflow commands for GitHub Actions, and a Code Quality report for GitLab.
func (r *Report) Annotate(w io.Writer, system string) error {
	if system == "gitlab" {
		return r.codeQuality(w)
	}
	// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	for _, f := range r.Failures {
		if _, err := fmt.Fprintf(w, "::error title=teescope compare::%s\n", escape.Replace(text.Terminal(f.Group+": "+f.Reason))); err != nil {
			return err
		}
	}
	return nil
}

// codeQuality writes what https://docs.gitlab.com/ci/testing/code_quality/ describes. It requests a file and a line; the run
// file is the only one that is known.
func (r *Report) codeQuality(w io.Writer) error {
	type lines struct {
		Begin int `json:"begin"`
	}
	type location struct {
		Path  string `json:"path"`
		Lines lines  `json:"lines"`
	}
	type issue struct {
		Description string   `json:"description"`
		CheckName   string   `json:"check_name"`
		Fingerprint string   `json:"fingerprint"`
		Severity    string   `json:"severity"`
		Location    location `json:"location"`
	}
	issues := []issue{}
	for _, f := range r.Failures {
		sum := sha256.Sum256([]byte(f.Condition + "\x00" + f.Group))
		issues = append(issues, issue{
			Description: f.Group + ": " + f.Reason, CheckName: "teescope compare", Fingerprint: hex.EncodeToString(sum[:16]), Severity: "major",
			Location: location{Path: f.Files[0], Lines: lines{1}},
		})
	}
	return jsonapi.Print(w, issues)
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// phrasesJSON holds the sentences of a report. The page reads the same file (web/src/pages/findings/report.ts).
//
//go:embed phrases.json
var phrasesJSON []byte

var phrases = func() map[string]string {
	all := map[string]string{}
	if err := json.Unmarshal(phrasesJSON, &all); err != nil {
		panic(fmt.Sprintf("decoding the embedded phrases.json: %v", err)) // every test of this package reads it
	}
	return all
}()

// say returns a phrase. The parts are alternating names and values of its placeholders.
func say(phrase string, parts ...string) string {
	text, known := phrases[phrase]
	if !known {
		panic("render: there is no phrase " + phrase)
	}
	var pairs []string
	for i := 0; i+1 < len(parts); i += 2 {
		pairs = append(pairs, "{"+parts[i]+"}", parts[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

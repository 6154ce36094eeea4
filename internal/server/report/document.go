// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/teescope/teescope/internal/lib/text"
)

// Files of the built page that are part of a report.
const (
	scriptFile = "report/report.js"
	styleFile  = "report/report.css"
)

// shell is the HTML file. Its content security policy allows its own script and style, and no connections.
const shell = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="teescope %s">
<title>%s</title>
<style>%s</style>
</head>
<body>
<div id="app"></div>
<noscript>This report draws its charts with JavaScript. It sends no requests.</noscript>
<script type="text/plain" id="recording">%s</script>
<script type="module">%s</script>
</body>
</html>
`

func document(w io.Writer, o Options, packed []byte) error {
	script, err := inline(o.Page, scriptFile, "</script", `<\/script`)
	if err != nil {
		return err
	}
	style, err := inline(o.Page, styleFile, "</style", `<\/style`)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("teescope report: %s, %s", o.Server, o.To.UTC().Format(time.RFC3339))
	_, err = fmt.Fprintf(w, shell, hash(script), hash(style), text.HTML(o.Version), text.HTML(title),
		style, base64.StdEncoding.EncodeToString(packed), script)
	return err
}

// inline reads a file. It is an error when the file would end the HTML element that it is put into.
func inline(page fs.FS, name, end, instead string) ([]byte, error) {
	data, err := fs.ReadFile(page, name)
	if err != nil {
		return nil, fmt.Errorf("reading the built page: %w", err)
	}
	return bytes.ReplaceAll(data, []byte(end), []byte(instead)), nil
}

// hash returns the hash of a text for a content security policy.
func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

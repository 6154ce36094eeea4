// SPDX-License-Identifier: Apache-2.0

// Package manifest reads and edits Gramine's manifests: TOML, the Jinja templates that gramine-manifest renders, and the
// signed .manifest.sgx with expanded trusted files. It supports all spellings of a key since Gramine 1.0.
//
// It reads bytes and returns bytes. It opens no file, and does not judge a setting.
package manifest

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// MaxBytes bounds a manifest. Signed manifests have several MiB, with about 100 bytes for each trusted file.
	MaxBytes = 16 << 20
	// maxNodes bounds the values of a manifest, with those in arrays and inline tables.
	maxNodes = 1 << 20
	// maxDepth bounds nested arrays and inline tables. Gramine's own need 3.
	maxDepth = 32
	// maxArrays bounds the different arrays of tables. Gramine knows fewer than ten.
	maxArrays = 256
	// maxKey bounds the parts of a dotted key.
	maxKey = 16
	// maxWarnings bounds the list of warnings.
	maxWarnings = 50
)

// Options say how a manifest is read.
type Options struct {
	// Name is the file's name, for messages. Files that end in .manifest or .manifest.sgx are rendered, others are
	// templates.
	Name string
	// Define has the variables that a template is rendered with. The name "env.X" is the environment variable X.
	Define map[string]string
}

// A Manifest is a manifest with the position of everything in it.
type Manifest struct {
	Name     string   // for messages: printable
	Signed   bool     // gramine-sgx-sign wrote it: trusted files are expanded
	Template bool     // it may have template marks
	Warnings []string // what was skipped, with lines
	Bytes    int      // its size

	file    string // its name as it is
	source  []byte
	entries []entry
	index   map[string]int // key: the first entry that has it
	arrays  map[string]int // arrays of tables: the number of their tables
	tables  []header
	lines   []int // where each line begins
	marks   []mark
	blocks  []block
	define  map[string]string
	missed  int // warnings that are not listed
}

// entry is one "key = value".
type entry struct {
	key        string // complete and dotted; parts that are not bare keys are quoted
	table      int    // of an array of tables: which; else -1
	start, end int    // of "key = value"
	keyEnd     int    // of the key
	header     int    // the header that it is under; -1 is none
	value      *node
}

// header is a [table] or an [[array of tables]].
type header struct {
	key   string
	start int
	array bool
}

// Kind is the type of a value.
type Kind string

// The kinds of values.
const (
	String  Kind = "string"
	Integer Kind = "integer"
	Bool    Kind = "boolean"
	Other   Kind = "number or time" // no key of Gramine has one
	Array   Kind = "array"
	Table   Kind = "table"
)

// A Node is a value, or an array or a table of them.
type node struct {
	Kind       Kind
	Text       string // of a string its content, of other scalars how they are written
	Line       int
	Items      []*node // of an array
	Keys       []string
	start, end int
}

// Field returns the value of a key of an inline table, or nil.
func (n *node) Field(key string) *node {
	for i, k := range n.Keys {
		if k == key {
			return n.Items[i]
		}
	}
	return nil
}

// A Value is the value of one key in a manifest.
type Value struct {
	Key     string // as the manifest spells it
	Line    int    // 0 if it is not set
	Set     bool
	Unknown string // why the value is not known although it is set: a template mark that is not rendered
	Assumed string // what was assumed to render it
	Kind    Kind
	Text    string // of a string its content, of other scalars how they are written

	start, end int  // of what has to be replaced to change it; -1 if that is not here
	literal    bool // a literal in a template mark
}

// Parse reads a manifest. The error names file and line.
func Parse(source []byte, o Options) (*Manifest, error) {
	m := &Manifest{
		Name: text.Terminal(text.Label(o.Name)), file: o.Name, Bytes: len(source), source: source, define: make(map[string]string), arrays: make(map[string]int),
		index: make(map[string]int), Template: !rendered(o.Name), lines: starts(source),
	}
	if len(source) > MaxBytes {
		return nil, fmt.Errorf("%s: it has more than %d MiB, the limit for a manifest", m.Name, MaxBytes>>20)
	}
	if encoding := notUTF8(source); encoding != "" {
		return nil, fmt.Errorf("%s: the file is in %s: save it as UTF-8 without a byte order mark, which TOML requires", m.Name, encoding)
	}
	for k, v := range o.Define {
		m.define[k] = v
	}
	masked := source
	if m.Template {
		var err error
		if masked, err = m.mask(); err != nil {
			return nil, err
		}
	}
	if err := m.parse(masked); err != nil {
		return nil, err
	}
	m.Signed = m.signed()
	return m, m.unique()
}

// OfGramine reports whether the manifest has a key of Gramine. Other files of TOML have none.
func OfGramine(m *Manifest) bool {
	return slices.ContainsFunc(m.entries, func(e entry) bool {
		top, _, below := strings.Cut(e.key, ".")
		return (below || e.value.Kind == Table) && slices.Contains([]string{"fs", "libos", "loader", "pal", "sgx", "sys"}, top)
	})
}

// rendered reports whether a file has no template marks by its name. gramine-manifest writes .manifest, and
// gramine-sgx-sign .manifest.sgx.
func rendered(name string) bool {
	return strings.HasSuffix(name, ".manifest.sgx") || filepath.Ext(name) == ".manifest"
}

// signed reports whether gramine-sgx-sign wrote the manifest: each trusted file has its hash.
func (m *Manifest) signed() bool {
	if strings.HasSuffix(m.Name, ".manifest.sgx") {
		return true
	}
	files := m.TrustedFiles()
	for _, f := range files {
		if !f.Hashed {
			return false
		}
	}
	return len(files) > 0 && !m.Template
}

// starts returns where each line begins.
func starts(source []byte) []int {
	all := []int{0}
	for i, c := range source {
		if c == '\n' {
			all = append(all, i+1)
		}
	}
	return all
}

// line returns the number of the line of a byte, from 1 on.
func (m *Manifest) line(at int) int {
	low, high := 0, len(m.lines)
	for high-low > 1 {
		if middle := (low + high) / 2; m.lines[middle] <= at {
			low = middle
		} else {
			high = middle
		}
	}
	return low + 1
}

func (m *Manifest) warn(line int, format string, args ...any) {
	if len(m.Warnings) >= maxWarnings {
		m.missed++
		m.Warnings[maxWarnings-1] = fmt.Sprintf("%s: %s", m.Name, text.Plural(m.missed+1, "more warning", "more warnings"))
		return
	}
	m.Warnings = append(m.Warnings, m.at(line)+": "+fmt.Sprintf(format, args...))
}

// at names a line of the file.
func (m *Manifest) at(line int) string { return fmt.Sprintf("%s:%d", m.Name, line) }

// At names the line of a value, or the file if it is not set.
func (m *Manifest) At(v Value) string {
	if !v.Set {
		return m.Name
	}
	return m.at(v.Line)
}

// shown makes a piece of a manifest safe for a message.
func shown(s string) string { return text.Short(text.Terminal(text.Label(s)), 100) }

// unique returns an error if a key is set twice. Values in a block of a template may be alternatives.
func (m *Manifest) unique() error {
	seen := make(map[string]int)
	for i, e := range m.entries {
		if e.table >= 0 {
			continue
		}
		first, found := seen[e.key]
		if !found {
			seen[e.key] = i
			continue
		}
		if m.inBlock(e.start) == nil && m.inBlock(m.entries[first].start) == nil {
			return fmt.Errorf("%s: %s is set again, first in line %d: keep one of the two", m.at(m.line(e.start)), shown(e.key), m.line(m.entries[first].start))
		}
	}
	return nil
}

// find returns the first entry of a key outside of blocks, else the first in a block, or -1.
func (m *Manifest) find(key string) int {
	if i, found := m.index[key]; found {
		return i
	}
	return -1
}

// Get returns the value of a key, in whichever spelling the manifest uses. The key is in today's spelling.
func (m *Manifest) Get(key string) Value {
	for _, spelling := range append([]string{key}, olderOf(key)...) {
		if i := m.find(spelling); i >= 0 {
			return m.value(i)
		}
		if v := m.inline(spelling); v.Set {
			return v
		}
	}
	return Value{Key: key}
}

// inline returns the value of a key that is in an inline table.
func (m *Manifest) inline(key string) Value {
	for cut := strings.LastIndexByte(key, '.'); cut > 0; cut = strings.LastIndexByte(key[:cut], '.') {
		i := m.find(key[:cut])
		if i < 0 || m.entries[i].value.Kind != Table {
			continue
		}
		if n := m.entries[i].value.Field(key[cut+1:]); n != nil {
			return m.valueOf(m.entries[i], n, key)
		}
	}
	return Value{Key: key}
}

// value resolves the value of an entry.
func (m *Manifest) value(i int) Value {
	return m.valueOf(m.entries[i], m.entries[i].value, m.entries[i].key)
}

func (m *Manifest) valueOf(e entry, n *node, key string) Value {
	v := Value{Key: key, Line: m.line(n.start), Set: true, Kind: n.Kind, Text: n.Text, start: n.start, end: n.end}
	if n == e.value {
		v.Line = m.line(e.start)
	}
	b := m.inBlock(e.start)
	if b == nil {
		b = alternatives(m.blocks, e, n)
	}
	if b != nil {
		v.Unknown = fmt.Sprintf("it is in the block {%% %s %%} of line %d", shown(b.name), b.line)
		return v
	}
	m.render(&v)
	return v
}

// Int returns the number of an integer.
func (v Value) Int() (int64, bool) {
	if !v.Set || v.Unknown != "" || v.Kind != Integer {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(v.Text, "_", ""), 0, 64)
	return n, err == nil
}

// Bool returns the value of a boolean. Gramine 1.0 still accepts 0 and 1.
func (v Value) Bool() (value, known bool) {
	switch {
	case !v.Set || v.Unknown != "":
	case v.Kind == Bool:
		return v.Text == "true", true
	case v.Kind == Integer && (v.Text == "0" || v.Text == "1"):
		return v.Text == "1", true
	}
	return false, false
}

// Str returns the content of a string.
func (v Value) Str() (string, bool) { return v.Text, v.Set && v.Unknown == "" && v.Kind == String }

// Size returns the bytes of a size, which Gramine writes as "512M".
func (v Value) Size() (uint64, bool) {
	s, ok := v.Str()
	if !ok {
		return 0, false
	}
	return ParseSize(s)
}

// ParseSize reads a size as Gramine's parse_size_str does: a decimal number and one of K, M, G or nothing.
func ParseSize(s string) (uint64, bool) {
	unit := uint64(1)
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'G', 'g':
			unit = 1 << 30
		case 'M', 'm':
			unit = 1 << 20
		case 'K', 'k':
			unit = 1 << 10
		}
		if unit > 1 {
			s = s[:n-1]
		}
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || s[0] == '+' || n > math.MaxUint64/unit {
		return 0, false
	}
	return n * unit, true
}

// A File is a trusted file.
type File struct {
	URI    string
	Line   int
	Hashed bool // it has a hash
}

// TrustedFiles returns the trusted files in all their spellings: an array of strings or tables, an array of tables with
// headers, and the names of Gramine 1.1 and older. Template marks in a URI are kept.
func (m *Manifest) TrustedFiles() []File {
	const key = "sgx.trusted_files"
	var all []File
	hashed := make(map[int]bool)
	for _, e := range m.entries {
		if e.key == key+".sha256" && e.table >= 0 {
			hashed[e.table] = true
		}
	}
	list := func(n *node) {
		for _, item := range n.Items {
			if uri := item.Field("uri"); item.Kind == Table && uri != nil {
				all = append(all, File{uri.Text, item.Line, item.Field("sha256") != nil})
			} else if item.Kind == String {
				all = append(all, File{URI: m.raw(item), Line: item.Line})
			}
		}
	}
	for _, e := range m.entries {
		switch {
		case e.key == key && e.value.Kind == Array:
			list(e.value)
		case e.key == "sgx" && e.value.Kind == Table && e.value.Field("trusted_files") != nil:
			list(e.value.Field("trusted_files"))
		case e.key == key+".uri" && e.table >= 0:
			all = append(all, File{e.value.Text, e.value.Line, hashed[e.table]})
		case strings.HasPrefix(e.key, key+".") && e.table < 0 && e.value.Kind == String:
			all = append(all, File{URI: m.raw(e.value), Line: e.value.Line})
		}
	}
	return all
}

// EncryptedMounts returns the lines of the mounts of the type "encrypted", in an array or under headers.
func (m *Manifest) EncryptedMounts() []Value {
	var all []Value
	eachEncrypted(m, func(e entry, kind, _ *node) { all = append(all, m.valueOf(e, kind, keyMounts+".type")) })
	return all
}

// EncryptedFiles returns the files and folders of the host that are mounted with the type "encrypted", as the manifest names
// them. It omits what a template hides.
func (m *Manifest) EncryptedFiles() []string {
	var all []string
	eachEncrypted(m, func(e entry, _, uri *node) {
		if uri == nil || uri.Kind != String {
			return
		}
		v := m.valueOf(e, uri, keyMounts+".uri")
		if name, found := strings.CutPrefix(v.Text, "file:"); found && v.Unknown == "" {
			all = append(all, name)
		}
	})
	return all
}

// keyMounts is the array of mounts.
const keyMounts = "fs.mounts"

// eachEncrypted calls f with the type and the URI of each mount of the type "encrypted". The URI may be nil.
func eachEncrypted(m *Manifest, f func(e entry, kind, uri *node)) {
	add := func(e entry, kind, uri *node) {
		if kind != nil && kind.Kind == String && kind.Text == "encrypted" {
			f(e, kind, uri)
		}
	}
	uris := make(map[int]*node) // by header
	for _, e := range m.entries {
		if e.key == keyMounts+".uri" && e.table >= 0 {
			uris[e.table] = e.value
		}
	}
	for _, e := range m.entries {
		list := e.value
		switch {
		case e.key == keyMounts+".type" && e.table >= 0:
			add(e, e.value, uris[e.table])
			continue
		case e.key == "fs" && list.Kind == Table:
			list = list.Field("mounts")
		case e.key != keyMounts:
			continue
		}
		if list == nil || list.Kind != Array {
			continue
		}
		for _, item := range list.Items {
			if item.Kind == Table {
				add(e, item.Field("type"), item.Field("uri"))
			}
		}
	}
}

// raw returns the content of a string as it is written, with its template marks.
func (m *Manifest) raw(n *node) string {
	if n.end-n.start < 2 || !m.Template {
		return n.Text
	}
	return strings.Trim(string(m.source[n.start:n.end]), `"'`)
}

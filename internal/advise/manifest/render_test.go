// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

// The conditions and defaults in marks are those that Gramine's examples have. A mark of another form hides its value.
func TestMarks(t *testing.T) {
	edmm1 := map[string]string{"env.EDMM": "1"}
	for _, c := range []struct {
		mark, want, assumed string
		define              map[string]string
	}{
		{`{{ '1' if env.get('EDMM', '0') == '1' else '4' }}`, "1 4", "--define env.EDMM=1 for", nil},
		{`{{'1' if env.get('EDMM','0')=='1' else '4'}}`, "1 1", "", edmm1},
		{`{{ '1' if env.get('EDMM', '1') == '1' else '4' }}`, "1 1", "--define env.EDMM=0 for", nil},
		{`{{ '1' if env.get('EDMM', '0') != '1' else '4' }}`, "1 1", "--define env.EDMM=1 for", nil},
		{`{{ 1 if env.get("EDMM", "0") | int > 0 else 8 }}`, "1 8", "--define env.EDMM=1 for", nil}, // of ra-tls-nginx
		{`{{ 1 if env.get("EDMM", "0") | int > 0 else 8 }}`, "1 1", "", edmm1},
		{`{{ 1 if env.get("EDMM", "0") | int > 0 else 8 }}`, "1 8", "", map[string]string{"env.EDMM": "yes"}},
		{`{{ 1 if env.get("EDMM", 0)|int >= 1 else 8 }}`, "1 8", "--define env.EDMM=1 for", nil},
		{`{{ 1 if env.get("EDMM", "2") | int != 2 else 8 }}`, "1 8", "--define env.EDMM=0 for", nil},
		{`{{ 1 if env.get("EDMM", "7") | int == 7 else 8 }}`, "1 1", "--define env.EDMM=0 for", nil},
		{`{{ 1 if env.get("EDMM", "0") | int == 99999999999999999999 else 8 }}`, "1 unknown", "", nil},
		{`{{ 1 if env.get("EDMM", "0") > "0" else 8 }}`, "1 unknown", "", nil},
		{`{{ 1 if env.get("EDMM", "0") | int == "0" else 8 }}`, "1 unknown", "", nil}, // never true in Jinja
		{`{{ 1 if env.get("EDMM", "0") == 0 else 8 }}`, "1 unknown", "", nil},
		{`{{ threads | default(16) }}`, "1 16", "threads is not set; --define threads=VALUE", nil},
		{`{{ threads|d("16") }}`, "1 12", "", map[string]string{"threads": "12"}},
		{`{{ env.get('THREADS', '16') }}`, "1 16", "THREADS is not set; --define env.THREADS=VALUE", nil},
		{`{{ env.get('THREADS', '16') }}`, "1 12", "", map[string]string{"env.THREADS": "12"}},
		{`{{ threads | default(other) }}`, "1 unknown", "", nil},
	} {
		m, err := Parse([]byte("sgx.max_threads = "+c.mark+"\n"), Options{Name: "app.manifest.template", Define: c.define})
		if err != nil {
			t.Fatal(err)
		}
		v := m.Get("sgx.max_threads")
		if got := say(v); got != c.want || !strings.Contains(v.Assumed, c.assumed) || (v.Assumed == "") != (c.assumed == "") {
			t.Errorf("%s with %v: %q, assumed %q; want %q", c.mark, c.define, got, v.Assumed, c.want)
		}
	}
}

// A variable that no mark has was probably misspelt.
func TestUnused(t *testing.T) {
	m, err := Parse([]byte("loader.log_level = \"{{ log_level }}\"\nsgx.edmm_enable = {{ 'true' if env.get('EDMM', '0') == '1' else 'false' }}\n# other\nloader.env.HOME = \"{{ env.HOME }}\"\n"),
		Options{Name: "app.manifest.template"})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Unused(m, []string{"log_level", "log", "other", "env.EDMM", "env.HOME", "env.EDM"}), " ")
	if want := "log other env.EDM"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

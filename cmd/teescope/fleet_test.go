// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestFleetFlags(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"--what-if", "db", "use POD=NODE"},
		{"--what-if", "=n1", "use POD=NODE"},
		{"--what-if", "db=", "use POD=NODE"},
		{"--window", "30s", "from 1m to 1d"},
		{"--window", "soon", "from 1m to 1d"},
		{"--limit", "0", "from 1 to 2000"},
		{"--rows", "501", "from 1 to 500"},
		{"--columns", "0", "from 1 to 200"},
		{"--what-if", "a=b=n1", "nothing listens"}, // the pod a=b
	} {
		_, _, err := execute(t, "fleet", "--server", "127.0.0.1:1", tt.flag, tt.value)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %s", tt.flag, tt.value, err, tt.want)
		}
	}
	var o fleetFlags
	o.whatIf, o.Window, o.Limit, o.Rows, o.Columns = "a=b@n1:9750=n2:9750", "1h", 1, 1, 1
	if err := o.read(); err != nil || o.Pod != "a=b@n1:9750" || o.To != "n2:9750" {
		t.Errorf("%+v, %v", o, err)
	}
	if out, _, err := execute(t, "__complete", "fleet", "--what-if", ""); err != nil || !strings.HasSuffix(out, ":4\n") {
		t.Errorf("completion: %q, %v", out, err)
	}
}

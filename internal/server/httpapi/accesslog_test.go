// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAccessLogIsBounded logs too many requests in one second, and one in the next second.
func TestAccessLogIsBounded(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	l := newAccessLog(AccessLog{Requests: logAll, To: &out})
	l.now = func() time.Time { return now }
	r := httptest.NewRequest("GET", "/api/v1/query?limit="+strings.Repeat("2", maxLogged)+"&query="+strings.Repeat("1", 2*maxLogged), nil)
	for range maxPerSecond + 100 {
		l.write(r, nil, &answer{}, time.Millisecond)
	}
	if lines := strings.Count(out.String(), "\n"); lines != maxPerSecond || strings.Contains(out.String(), "omitted_before") {
		t.Errorf("%d requests of one second are logged, want %d", lines, maxPerSecond)
	}
	if longest := out.Len() / maxPerSecond; longest > maxLogged+maxLogged/8 {
		t.Errorf("a line has %d bytes", longest)
	}
	out.Reset()
	now = now.Add(time.Second)
	l.write(r, nil, &answer{}, time.Millisecond)
	if !strings.Contains(out.String(), `"omitted_before":100`) || !strings.Contains(out.String(), `"status":200`) {
		t.Errorf("the next line is %.300s", out.String())
	}
}

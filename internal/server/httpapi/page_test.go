// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"
)

// A page compares the tag of index.html with the one of its own version, before it mixes its scripts with those of an update.
func TestTagOfThePageIsThatOfAllFiles(t *testing.T) {
	tag := func(script string) string {
		w := httptest.NewRecorder()
		newPage(fstest.MapFS{"index.html": {Data: []byte("page")}, "assets/Views.js": {Data: []byte(script)}}).ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/", nil))
		if w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		return w.Header().Get("ETag")
	}
	first, same, other := tag("a"), tag("a"), tag("b")
	if first != same || first == other {
		t.Errorf("tags %s, %s and %s of the versions a, a and b", first, same, other)
	}
}

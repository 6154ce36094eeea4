// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"fmt"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	const plain = "h_bucket{le=\"0.1\"} 3\nh_bucket{le=\"+Inf\"} 5\nh_sum 0.7\nh_count 5\n"
	const labelled = "h_bucket{a=\"} \\\"x,le=\",le=\"0.1\"} 3\nh_bucket{a=\"} \\\"x,le=\",le=\"+Inf\"} 5\nh_sum{a=\"} \\\"x,le=\"} 0.7\nh_count{a=\"} \\\"x,le=\"} 5\n"
	for text, want := range map[string]string{
		"":                        "",
		plain:                     "h 5 # {le=\"0.1,+Inf\",n=\"3,5\"} 0.7\n",
		plain + "h_created 1.5\n": "h 5 # {le=\"0.1,+Inf\",n=\"3,5\"} 0.7\nh_created 1.5\n",
		labelled + plain:          "h{a=\"} \\\"x,le=\"} 5 # {le=\"0.1,+Inf\",n=\"3,5\"} 0.7\nh 5 # {le=\"0.1,+Inf\",n=\"3,5\"} 0.7\n",
	} {
		if got := string(Pack([]byte("h"), []byte(text))); got != want {
			t.Errorf("%s becomes\n%s, want\n%s", text, got, want)
		}
	}
	for _, text := range []string{
		"h_bucket{le=\"0.1\"} 3\n", "h_bucket{le=\"0.1\"} 3\nh_sum 1\n", "h_sum 1\nh_count 1\n", "h_count 1\n", "other 1\n", "h_bucket 3\n", "h_bucket{} 3\n",
		"h_bucket{le=\"0.1\"} 3\nh_sum{a=\"b\"} 1\nh_count 5\n", "h_bucket{le=\"0.1\"} 3\nh_bucket{a=\"b\",le=\"1\"} 3\nh_sum 1\nh_count 5\n",
		"h_bucket{le=\"0.1\",a=\"b\"} 3\nh_sum 1\nh_count 5\n", "h_bucket{le=\"0.1\"} 3\nh_created 1\n", strings.TrimSuffix(plain, "\n"), "h_bucket{ale=\"0.1\"} 3\nh_sum 1\nh_count 3\n",
	} {
		if got := string(Pack([]byte("h"), []byte(text))); got != text {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

func TestEach(t *testing.T) {
	for _, tt := range []struct{ bounds, counts, want string }{
		{"0.1,+Inf", "3,5", "0.1:3 +Inf:5 true"}, {"+Inf", "5", "+Inf:5 true"}, {"", "", "false"}, {"1", "", "false"}, {"1,2", "3", "false"},
		{"1", "3,4", "false"}, {"x", "3", "false"}, {"1", "-3", "false"}, {"1", "1.5", "false"}, {"1,", "3,", "1:3 false"},
	} {
		got := ""
		ok := Each(tt.bounds, tt.counts, func(bound, count float64) bool {
			got += fmt.Sprintf("%g:%g ", bound, count)
			return true
		})
		if got += fmt.Sprint(ok); got != tt.want {
			t.Errorf("%q, %q: %s, want %s", tt.bounds, tt.counts, got, tt.want)
		}
	}
	if Each("1,2", "3,4", func(float64, float64) bool { return false }) {
		t.Error("the function has refused a bucket")
	}
}

func FuzzPack(f *testing.F) {
	f.Add("h", "h_bucket{a=\"b\",le=\"0.1\"} 3\nh_bucket{a=\"b\",le=\"+Inf\"} 5\nh_sum{a=\"b\"} 0.7\nh_count{a=\"b\"} 5\nh_created{a=\"b\"} 1\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if got := Pack([]byte(name), []byte(text)); len(got) > 2*len(text)+1 {
			t.Errorf("%d bytes become %d", len(text), len(got))
		}
	})
}

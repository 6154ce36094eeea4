// SPDX-License-Identifier: Apache-2.0

package jsonapi

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// maxAhead is how far a requested time may be in the future, because of the client's clock or the end of a time
// range. A later time is a mistake, such as a wrong unit.
const maxAhead = time.Hour

// Time parses the time of a parameter: RFC 3339, or seconds since 1970. It is now at the latest. It refuses times outside the range
// of databases, for which arithmetic could overflow.
func Time(name, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil && !math.IsNaN(seconds) && math.Abs(seconds) < 1e11 {
		at, err = time.UnixMilli(int64(seconds*1000)), nil
	}
	now := time.Now()
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("%s=%.40q is not a time: use for example 2026-01-02T15:04:05Z, or seconds since 1970", name, text)
	case at.Before(time.Unix(0, 0)), at.After(now.Add(maxAhead)):
		return time.Time{}, fmt.Errorf("%s=%s is before 1970 or in the future", name, at.UTC().Format(time.RFC3339))
	case at.After(now):
		return now, nil
	}
	return at, nil
}

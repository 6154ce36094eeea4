// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
)

// scrapeErrors logs errors while metrics are written. It ignores clients that disconnect, as a scraper does at its
// timeout, because each remaining family would log a line.
type scrapeErrors struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (s scrapeErrors) Println(v ...any) {
	level := slog.LevelWarn
	for _, part := range v {
		if err, ok := part.(error); ok && clientGone(err) {
			level = slog.LevelDebug
		}
	}
	s.log.Log(context.Background(), level, strings.TrimSuffix(fmt.Sprintln(v...), "\n"))
}

func clientGone(err error) bool {
	for _, gone := range []error{io.ErrClosedPipe, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET, context.Canceled} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

// Package logtest keeps what a program writes in a test, such as its log, while other goroutines write more.
//
// It does not check what is written.
package logtest

import (
	"bytes"
	"strings"
	"sync"
)

// Log is a writer that keeps everything. Its methods are safe for concurrent use.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Count returns how often a text was written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

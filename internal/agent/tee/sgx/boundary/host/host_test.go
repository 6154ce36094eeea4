// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// The name of a loader's application is in its arguments. One that does not answer has no other name meanwhile.
func TestALoaderThatDoesNotAnswerHasNoOtherName(t *testing.T) {
	proc := t.TempDir()
	hostfstest.Write(t, proc, "7/comm", "loader\n")
	hostfstest.Write(t, proc, "7/cmdline", "/usr/loader\x00/usr/libpal.so\x00init\x00redis-server\x00")
	hostfstest.Write(t, proc, "8/comm", "nginx\n")
	silent := New(proc, proc, reader.New(reader.Options{Ready: make(chan struct{})}))
	if id, err := silent.Identify(7); !reader.Unanswered(err) || id.Name != "" {
		t.Errorf("a loader that does not answer is %+v, %v", id, err)
	}
	if id, err := silent.Identify(8); err != nil || id.Name != "nginx" {
		t.Errorf("a program that does not answer is %+v, %v", id, err)
	}
	if id, err := New(proc, proc, nil).Identify(7); err != nil || id.Name != "redis-server" {
		t.Errorf("a loader is %+v, %v", id, err)
	}
}

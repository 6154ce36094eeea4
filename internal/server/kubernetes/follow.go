// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/teescope/teescope/internal/lib/inputfile"
)

// Meta is what [Follow] needs of an object. A type that is followed embeds it as the field metadata.
type Meta struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
	Labels          Labels `json:"labels"`
	// Annotations has only those that are used: all of an object may have 256 KiB.
	Annotations Annotations `json:"annotations"`
	Deleted     string      `json:"deletionTimestamp"` // empty unless it is being deleted
	Owners      Owners      `json:"ownerReferences"`
}

// Annotations are the annotations that teescope uses.
type Annotations struct {
	Scheme string `json:"prometheus.io/scheme"` // of a pod: says that its port has TLS. Scrape configurations often read it
}

// maxLabels is the maximum size of an object's labels, as JSON. Kubernetes bounds each of them, but not their number.
const maxLabels = 8 << 10

// Labels are the labels of an object, or empty if there are very many.
type Labels map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (l *Labels) UnmarshalJSON(data []byte) error {
	if len(data) > maxLabels {
		return nil
	}
	var all map[string]string
	err := json.Unmarshal(data, &all)
	*l = all
	return err
}

// Owners is the controller of an object, which it has at most once. Other owners may be many.
type Owners []Owner

// UnmarshalJSON implements json.Unmarshaler.
func (o *Owners) UnmarshalJSON(data []byte) error {
	some, err := first(data, 1, func(o Owner) bool { return o.Controller })
	*o = some
	return err
}

// Owner is the controller of an object.
type Owner struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Controller bool   `json:"controller"`
}

// Object is a type that is followed.
type Object interface{ Head() Meta }

// Follower describes the followed objects. Zero values of the times are the usual ones.
type Follower struct {
	Client *Client
	Path   string     // of the list, such as /api/v1/namespaces/NAME/pods
	Query  url.Values // selectors
	Most   int        // objects; beyond it the list is refused
	// Failed receives the reason why objects cannot be read. Objects that were read before stay.
	Failed func(error)

	watch, first, longest time.Duration
}

const (
	watchFor   = 5 * time.Minute // a watch, after which the list is read again
	firstPause = time.Second     // before a failed request is repeated; doubled each time
	longPause  = 30 * time.Second
	together   = 200 * time.Millisecond // changes within this time are reported together
)

// Follow reports all objects at the start and after each change, until ctx ends.
func Follow[T Object](ctx context.Context, f Follower, tell func([]T)) {
	if f.watch == 0 {
		f.watch, f.first, f.longest = watchFor, firstPause, longPause
	}
	pause := f.first
	for ctx.Err() == nil {
		all, version, err := list[T](ctx, f)
		if err == nil {
			pause = f.first
			tell(values(all))
			err = follow(ctx, f, all, version, tell)
		}
		wait := f.first // also after a watch that ended normally: a server may end each watch at once
		if err != nil && ctx.Err() == nil && !gone(err) {
			f.Failed(err)
			wait, pause = pause, min(2*pause, f.longest)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// gone reports that the API server no longer knows the version from which changes were requested.
func gone(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusGone
}

func values[T any](all map[string]T) []T {
	out := make([]T, 0, len(all))
	for v := range maps.Values(all) {
		out = append(out, v)
	}
	return out
}

// list reads all pages. The version is the point from which a watch continues.
func list[T Object](ctx context.Context, f Follower) (all map[string]T, version string, err error) {
	all = map[string]T{}
	query := url.Values{}
	maps.Copy(query, f.Query)
	size := pageSize
	for pages := 0; ; pages++ {
		if pages > 1000+f.Most {
			return nil, "", fmt.Errorf("%s has more than %d pages", f.Path, pages)
		}
		query.Set("limit", strconv.Itoa(size))
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err := f.Client.page(ctx, f.Path, query, &page); errors.Is(err, inputfile.ErrSize) && size > 1 {
			size /= 2 // users who create objects choose their size
			continue
		} else if err != nil {
			return nil, "", err
		}
		size = min(2*size, pageSize)
		for _, item := range page.Items {
			all[item.Head().UID] = item
		}
		if len(all) > f.Most {
			return nil, "", fmt.Errorf("%s has more than %d objects", f.Path, f.Most)
		}
		if page.Metadata.Continue == "" {
			return all, page.Metadata.ResourceVersion, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

func (c *Client) page(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	body, err := c.get(ctx, path, query)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // nothing was written
	data, err := inputfile.ReadAll(body, maxBody)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return decode(data, into)
}

func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("decoding the answer of the API server: %w", err)
	}
	return nil
}

// change is one line of a watch.
type change struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// follow applies changes until the API server ends the watch at the requested time, or until an error.
func follow[T Object](ctx context.Context, f Follower, all map[string]T, version string, tell func([]T)) error {
	ctx, cancel := context.WithTimeout(ctx, f.watch+answerWithin)
	defer cancel()
	query := url.Values{}
	maps.Copy(query, f.Query)
	query.Set("watch", "true")
	query.Set("resourceVersion", version)
	query.Set("timeoutSeconds", strconv.Itoa(max(1, int(f.watch/time.Second))))
	body, err := f.Client.get(ctx, f.Path, query)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // nothing was written
	changes, failed := make(chan change), make(chan error, 1)
	go func() { failed <- read(ctx, body, changes) }()
	var due <-chan time.Time
	for {
		select {
		case c := <-changes:
			if err := apply(all, c, f.Most); err != nil {
				return err
			}
			if due == nil {
				due = time.After(together)
			}
		case <-due:
			due = nil
			tell(values(all))
		case err := <-failed:
			if due != nil {
				tell(values(all))
			}
			return err
		}
	}
}

// apply changes one object.
func apply[T Object](all map[string]T, c change, most int) error {
	if c.Type == "ERROR" {
		var status struct {
			Code    int
			Message string
		}
		if err := decode(c.Object, &status); err != nil {
			return err
		}
		return &statusError{status.Code, "the API server ends a watch: " + status.Message}
	}
	var object T
	if err := decode(c.Object, &object); err != nil {
		return err
	}
	if c.Type == "DELETED" {
		delete(all, object.Head().UID)
		return nil
	}
	if all[object.Head().UID] = object; len(all) > most {
		return fmt.Errorf("there are more than %d objects", most)
	}
	return nil
}

// read decodes changes until the body ends. The end is not an error.
func read(ctx context.Context, body io.Reader, changes chan<- change) error {
	limited := &io.LimitedReader{R: body}
	lines := json.NewDecoder(limited)
	for {
		limited.N = maxObject
		var c change
		err := lines.Decode(&c)
		switch {
		case limited.N <= 0:
			return fmt.Errorf("a change of an object has more than %d bytes", maxObject)
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("reading changes: %w", err)
		}
		select {
		case changes <- c:
		case <-ctx.Done():
			return nil
		}
	}
}

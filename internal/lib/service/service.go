// SPDX-License-Identifier: Apache-2.0

// Package service starts and stops the parts of a program in order.
//
// A part is anything with a name; what it can do beyond that (be initialised, run, be shut down) it
// says by implementing the interfaces here. The package knows no part: it refuses to import anything
// of teescope, to restart what has ended, and to decide what an error means.
package service

import "context"

// Service is a part of the program.
type Service interface {
	// Name is short, lower case and constant: it appears in logs, errors and in /-/ready.
	Name() string
}

// Initializer is a service that must be prepared before anything runs. When Init returns an error
// it has given back whatever it took: Shutdown is not called for it.
type Initializer interface {
	Service
	Init(ctx context.Context) error
}

// Runner is a service with work of its own. Run returns nil when ctx ends. When it returns earlier,
// with or without an error, the whole group stops.
type Runner interface {
	Service
	Run(ctx context.Context) error
}

// Shutdowner is a service that gives something back at the end. Shutdown is called once for each
// service that was initialised, whether it runs or not, after every Run has returned.
type Shutdowner interface {
	Service
	Shutdown(ctx context.Context) error
}

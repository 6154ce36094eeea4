// SPDX-License-Identifier: Apache-2.0

// Package service starts and stops the parts of a program in order.
//
// A part is any value with a name. It can also implement the interfaces here: to be initialised, run or shut down. The
// package does not depend on a part. It does not import other packages of teescope, restart parts or interpret errors.
package service

import "context"

// Service is a part of the program.
type Service interface {
	// Name is short, lower case and constant. It appears in logs, errors and in /-/ready.
	Name() string
}

// Initializer is a service that must be prepared before anything runs. When Init returns an error, it has released all
// resources, and Shutdown is not called.
type Initializer interface {
	Service
	Init(ctx context.Context) error
}

// Runner is a service with its own work. Run returns nil when ctx ends. When it returns earlier, with or without an
// error, the whole group stops.
type Runner interface {
	Service
	Run(ctx context.Context) error
}

// Shutdowner is a service that releases resources at the end. Shutdown is called once for each initialised service,
// whether it runs or not, after every Run has returned. It is not called for a service whose own Run hangs.
type Shutdowner interface {
	Service
	Shutdown(ctx context.Context) error
}

// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// Soon is within which time after the end of a workload or a container its next start belongs to it. What starts later
// is a job that runs now and then.
const Soon = 2 * time.Minute

// What follows what was there before: values of the label change.
const (
	Restart    = "restart"    // the same program or image
	Deployment = "deployment" // another one
)

// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// Soon is the maximum time between the end of a workload or container and a restart of it. A later start is a new run
// of a job.
const Soon = 2 * time.Minute

// The kinds of a replacement, as values of the label "change".
const (
	Restart    = "restart"    // by the same program or image
	Deployment = "deployment" // by another program or image
)

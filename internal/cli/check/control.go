// SPDX-License-Identifier: Apache-2.0

package check

import "fmt"

const groupControl = "control"

// control says whether more can be measured for a while, from the page, the API and "teescope top".
func (o Options) control() []Check {
	if o.Control == nil {
		return nil
	}
	c := Check{Group: groupControl, Name: "switching", Status: OK}
	switch allowed, longest, err := o.Control(); {
	case err != nil:
		c.Status, c.Detail = Unknown, "the configuration cannot be read: "+printable(err.Error())
		c.Advice = "name a valid file in TEESCOPE_CONFIG, or remove it: \"teescope config\" lists what is wrong"
	case allowed:
		c.Detail = fmt.Sprintf("watching, timing and exact counting can be switched on, for at most %s", longest)
	default:
		c.Status, c.Detail = Limited, "the agent is not allowed to watch, time calls or count exactly on request"
		c.Advice = "to allow it, start up or agent with --control.enabled, or set control.enabled in the configuration file"
	}
	return []Check{c}
}

// SPDX-License-Identifier: Apache-2.0

package kubernetes

// Pod has the fields of a pod that teescope uses.
type Pod struct {
	Meta `json:"metadata"`

	Spec struct {
		NodeName       string      `json:"nodeName"`
		Containers     []Container `json:"containers"`
		InitContainers []Container `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		PodIP string `json:"podIP"`
		Phase string `json:"phase"`
	} `json:"status"`
}

// Container has the fields of a container that teescope uses.
type Container struct {
	Name  string `json:"name"`
	Ports []struct {
		Name string `json:"name"`
		Port int    `json:"containerPort"`
	} `json:"ports"`
	Resources struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	} `json:"resources"`
}

// Node has the fields of a node that teescope uses.
type Node struct {
	Meta `json:"metadata"`

	Status struct {
		Allocatable map[string]string `json:"allocatable"`
	} `json:"status"`
}

// Head implements [Object].
func (m Meta) Head() Meta { return m }

// Ended reports whether a pod's containers run no more and never will again.
func (p *Pod) Ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/json"
)

// Pod has the fields of a pod that teescope uses.
type Pod struct {
	Meta `json:"metadata"`

	Spec struct {
		NodeName       string     `json:"nodeName"`
		Containers     Containers `json:"containers"`
		InitContainers Containers `json:"initContainers"`
	} `json:"spec"`
	Status struct {
		PodIP string `json:"podIP"`
		Phase string `json:"phase"`
	} `json:"status"`
}

// Container has the fields of a container that teescope uses.
type Container struct {
	Name      string `json:"name"`
	Ports     Ports  `json:"ports"`
	Resources struct {
		Requests Resources `json:"requests"`
		Limits   Resources `json:"limits"`
	} `json:"resources"`
}

// Port has the fields of a container's port that teescope uses.
type Port struct {
	Name string `json:"name"`
	Port int    `json:"containerPort"`
}

// Resources has the amount of EPC, as Intel's device plugin calls it, in the format of Kubernetes' quantities. It may be empty.
type Resources struct {
	EPC string `json:"sgx.intel.com/epc"`
}

// Kubernetes bounds the size of an object, but not these numbers. Any user who may create a pod chooses them.
const (
	maxContainers = 100 // of a pod, and as many init containers
	maxPorts      = 100 // of a container
)

// Containers are the first maxContainers containers of a pod.
type Containers []Container

// UnmarshalJSON implements json.Unmarshaler.
func (c *Containers) UnmarshalJSON(data []byte) error {
	some, err := first[Container](data, maxContainers)
	*c = some
	return err
}

// Ports are the first maxPorts ports of a container.
type Ports []Port

// UnmarshalJSON implements json.Unmarshaler.
func (p *Ports) UnmarshalJSON(data []byte) error {
	some, err := first[Port](data, maxPorts)
	*p = some
	return err
}

// first decodes the first values of a list.
func first[T any](data []byte, most int) ([]T, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return nil, err // null
	}
	var some []T
	for d.More() && len(some) < most {
		var one T
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		some = append(some, one)
	}
	return some, nil
}

// Node has the fields of a node that teescope uses.
type Node struct {
	Meta `json:"metadata"`

	Status struct {
		Allocatable Resources `json:"allocatable"`
	} `json:"status"`
}

// Head implements [Object].
func (m Meta) Head() Meta { return m }

// Ended reports whether all containers of a pod have ended for good.
func (p *Pod) Ended() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

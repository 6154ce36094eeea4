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

// AgentPort is the name of an agent's port in its pod.
const AgentPort = "http"

// maxContainers is the maximum number of containers of a pod that are kept, and of init containers. Kubernetes bounds the size of an
// object, but not the number of its containers and ports. Any user who may create a pod chooses these.
const maxContainers = 30

// Containers are the first maxContainers containers of a pod that have EPC or the port of an agent.
type Containers []Container

// UnmarshalJSON implements json.Unmarshaler.
func (c *Containers) UnmarshalJSON(data []byte) error {
	some, err := first(data, maxContainers, func(c Container) bool {
		return len(c.Ports) > 0 || c.Resources.Requests.EPC != "" || c.Resources.Limits.EPC != ""
	})
	*c = some
	return err
}

// Ports is the first port of a container that is called AgentPort.
type Ports []Port

// UnmarshalJSON implements json.Unmarshaler.
func (p *Ports) UnmarshalJSON(data []byte) error {
	some, err := first(data, 1, func(p Port) bool { return p.Name == AgentPort })
	*p = some
	return err
}

// first decodes the first values of a list that keep selects.
func first[T any](data []byte, most int, keep func(T) bool) ([]T, error) {
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
		if keep(one) {
			some = append(some, one)
		}
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

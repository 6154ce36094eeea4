// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Config has the enclave settings in the configuration of a runtime other than Gramine.
type Config struct {
	Runtime string // "EGo", "Occlum", "Open Enclave" or "SCONE"
	Memory  uint64 // bytes that the enclave may use; 0 is not set
	Key     string // of the memory
	Threads uint64 // that may run in it; 0 is not set
	Debug   bool   // the host may read and write the enclave's memory
	SCONE   SCONE
}

// ParseConfig reads enclave.json of EGo, Occlum.json or Occlum.yaml, the properties that Open Enclave signs (NAME=VALUE), or
// the settings of SCONE: variables of its environment, or its configuration file.
func ParseConfig(data []byte) (Config, error) {
	switch {
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")):
		return parseJSON(data)
	case occlumYAML().Match(data):
		return parseYAML(data)
	case isSCONE(string(data)):
		return parseSCONE(string(data))
	}
	return parseProperties(data)
}

// parseJSON reads enclave.json of EGo or Occlum.json.
func parseJSON(data []byte) (Config, error) {
	var file struct {
		HeapSize  *uint64 `json:"heapSize"` // MB
		Debug     bool    `json:"debug"`
		Resources *struct {
			User    string `json:"user_space_size"`
			UserMax string `json:"user_space_max_size"` // with EDMM; the size is then that of the start
			Heap    string `json:"kernel_space_heap_size"`
			HeapMax string `json:"kernel_space_heap_max_size"` // likewise
			Threads uint64 `json:"max_num_of_threads"`
		} `json:"resource_limits"`
		Metadata struct {
			Debuggable bool `json:"debuggable"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return Config{}, wrongJSON(err)
	}
	switch {
	case file.HeapSize != nil:
		if *file.HeapSize > 1<<30 {
			return Config{}, fmt.Errorf("heapSize is %d: it is in MB", *file.HeapSize)
		}
		return Config{Runtime: "EGo", Memory: *file.HeapSize << 20, Key: "heapSize", Debug: file.Debug}, nil
	case file.Resources != nil:
		user, ok1 := sizeOf(cmp.Or(file.Resources.UserMax, file.Resources.User))
		heap, ok2 := sizeOf(cmp.Or(file.Resources.HeapMax, file.Resources.Heap))
		if !ok1 || !ok2 {
			return Config{}, fmt.Errorf("a size of resource_limits has not the form \"300MB\"")
		}
		return Config{
			Runtime: "Occlum", Memory: user + heap, Key: "resource_limits, user space and kernel heap",
			Threads: file.Resources.Threads, Debug: file.Metadata.Debuggable,
		}, nil
	}
	return Config{}, fmt.Errorf("%w: EGo has heapSize, and Occlum has resource_limits", errNothing)
}

// wrongJSON says what is wrong with a file in the terms of JSON.
func wrongJSON(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("it is not JSON of EGo or Occlum: %q", err.Error())
	}
	form := "an object"
	switch wrong.Type.Kind() {
	case reflect.Uint64:
		form = "a whole number from 0 on"
	case reflect.Bool:
		form = "true or false"
	case reflect.String:
		form = "a size in quotes"
	}
	return fmt.Errorf("%s takes %s, and has a %.40s", wrong.Field, form, wrong.Value)
}

// sizeOf reads a size as Occlum and SCONE write it: 300MB, 64M or a number of bytes. Nothing is 0.
func sizeOf(s string) (uint64, bool) {
	if s == "" {
		return 0, true
	}
	unit := uint64(1)
	s = strings.TrimSuffix(strings.TrimSpace(s), "B")
	for i, name := range []string{"K", "M", "G", "T"} {
		if number, found := strings.CutSuffix(s, name); found {
			s, unit = number, 1<<(10*(i+1))
			break
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return n * unit, err == nil && n <= 1<<53/unit
}

// parseProperties reads the properties of Open Enclave: Debug, NumHeapPages, NumTCS and others. A page has 4 KiB.
func parseProperties(data []byte) (Config, error) {
	c := Config{Runtime: "Open Enclave", Key: "NumHeapPages"}
	known := false
	for n, line := range lines(string(data)) {
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name != "Debug" && name != "NumHeapPages" && name != "NumTCS" {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSpace(value), 10, 40)
		if err != nil {
			return Config{}, fmt.Errorf("line %d: %s is not a number", n, name)
		}
		known = true
		switch name {
		case "Debug":
			c.Debug = number != 0
		case "NumHeapPages":
			c.Memory = number * 4096
		case "NumTCS":
			c.Threads = number
		}
	}
	if !known {
		return Config{}, fmt.Errorf("%w: Open Enclave has NumHeapPages, EGo heapSize, Occlum resource_limits, and SCONE variables such as SCONE_QUEUES", errNothing)
	}
	return c, nil
}

// SPDX-License-Identifier: Apache-2.0

package profile

// attributes are the names of labels in OpenTelemetry's semantic conventions.
var attributes = map[string]string{
	Process: "process.executable.name", PID: "process.pid", Thread: "thread.id", "thread": "thread.name",
}

// AttributeOf returns the attribute of OpenTelemetry that has the meaning of a label, or "".
func AttributeOf(label string) string { return attributes[label] }

// LabelOf returns the label with the meaning of an attribute of OpenTelemetry, or "".
func LabelOf(attribute string) string {
	for label, a := range attributes {
		if a == attribute {
			return label
		}
	}
	return ""
}

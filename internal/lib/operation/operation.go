// SPDX-License-Identifier: Apache-2.0

// Package operation names the series of the operations of workloads, and lists the counters of common exporters.
//
// The server makes these series from the samples of applications, and the analysis reads them. This package contains only
// names.
package operation

// The names of the series. A colon marks series that only the server makes: no target can send them.
const (
	// Family has the operations of a workload: copies of the samples of the application's counter.
	Family = "teescope:operations_total"
	// Durations has their durations: copies of the samples of a native histogram, and with the suffix _bucket those of a
	// classic one.
	Durations = "teescope:operation_duration"
	// SourceFamily says for each workload which counter and histogram are read, and whether they are there.
	SourceFamily = "teescope_operations_source_info"
)

// Labels of the series, besides workload and instance, which is the machine.
const (
	Counter = "counter" // the name of the metric in the application
	Basis   = "basis"   // [Configured] or [Guessed]
	Unit    = "unit"    // of durations: the last word of the histogram's name
	Series  = "series"  // distinguishes the series of one counter
)

// The values of [Basis].
const (
	Configured = "configured" // named by the operator
	Guessed    = "guessed"    // one of [Known]
)

// The states of a source.
const (
	Counted   = "counted"         // read
	Waiting   = "waiting"         // not scraped yet
	Down      = "down"            // the target does not answer
	Missing   = "missing"         // no series of the target has the name and the labels
	NoKnown   = "none-known"      // no counter was named, and the target has no known one
	Ambiguous = "ambiguous"       // no counter was named, and the target has those of several exporters
	NoCounter = "not-a-counter"   // the metric has another type
	Invalid   = "invalid-value"   // not a number of operations: NaN, infinite, negative or above [Most]
	TooMany   = "too-many-series" // more than the limit
	Refused   = "refused"         // the target has used its part of the memory
)

// Units returns the units of durations in seconds, by the last word of a histogram's name.
func Units() map[string]float64 {
	return map[string]float64{
		"seconds": 1, "milliseconds": 1e-3, "ms": 1e-3, "microseconds": 1e-6, "usec": 1e-6, "us": 1e-6, "nanoseconds": 1e-9, "ns": 1e-9,
	}
}

// Most is the largest number of operations. Beyond it a counter, which is a float64, does not count single ones.
const Most = 1 << 53

// A KnownCounter is the counter of operations of a common exporter.
type KnownCounter struct {
	Metric   string
	Exporter string // counters of the same exporter exclude each other: the first one that is there counts
	Source   string // where its meaning is documented
}

// Known returns the counters that are read if the operator names none.
func Known() []KnownCounter {
	const http = "HTTP server"
	return []KnownCounter{
		{"redis_commands_processed_total", "redis_exporter", "github.com/oliver006/redis_exporter, exporter: total_commands_processed of INFO"},
		{"nginx_http_requests_total", "nginx-prometheus-exporter", "github.com/nginx/nginx-prometheus-exporter, README: requests of stub_status"},
		{"pg_stat_database_xact_commit", "postgres_exporter", "github.com/prometheus-community/postgres_exporter, collector/pg_stat_database.go: committed transactions"},
		{"mysql_global_status_queries", "mysqld_exporter", "github.com/prometheus/mysqld_exporter, collector/global_status.go: Queries of SHOW GLOBAL STATUS"},
		{"memcached_commands_total", "memcached_exporter", "github.com/prometheus/memcached_exporter, README: commands by command and status"},
		{"http_requests_total", http, "prometheus.io/docs/practices/naming: the example of a counter of requests"},
		{"http_server_requests_seconds_count", http, "docs.micrometer.io, Spring Boot: http.server.requests"},
		{"http_server_request_duration_seconds_count", http, "OpenTelemetry, HTTP metrics: http.server.request.duration"},
		{"http_request_duration_seconds_count", http, "prometheus.io/docs/practices/histograms: the example of a histogram of requests"},
	}
}

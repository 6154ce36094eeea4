// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const directory = "../../compose"

// service has every key that the file uses. Another one fails the test, and so does a wrong name.
type service struct {
	Image       string            `json:"image"`
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment"`
	PID         string            `json:"pid"`
	User        string            `json:"user"`
	ReadOnly    bool              `json:"read_only"`
	CapDrop     []string          `json:"cap_drop"`
	CapAdd      []string          `json:"cap_add"`
	SecurityOpt []string          `json:"security_opt"`
	MemLimit    string            `json:"mem_limit"`
	Networks    []string          `json:"networks"`
	Restart     string            `json:"restart"`
	Volumes     []string          `json:"volumes"`
	Ports       []string          `json:"ports"`
}

type composition struct {
	Name     string              `json:"name"`
	Services map[string]service  `json:"services"`
	Networks map[string]struct{} `json:"networks"`
	Volumes  map[string]struct{} `json:"volumes"`
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(directory, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func TestServices(t *testing.T) {
	var c composition
	read(t, "compose.yaml", &c)
	if len(c.Services) != 3 {
		t.Errorf("%d services", len(c.Services))
	}
	for name, s := range c.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: other machines reach %s", name, p)
			}
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := c.Volumes[from]
			if _, err := os.Stat(filepath.Join(directory, from)); !named && (err != nil || !strings.HasSuffix(v, ":ro")) {
				t.Errorf("%s: %s does not exist or can be changed: %v", name, v, err)
			}
		}
		if !regexp.MustCompile(`:v?[0-9]+\.[0-9]+\.[0-9]+}?$`).MatchString(s.Image) {
			t.Errorf("%s: the version of %s is not fixed", name, s.Image)
		}
		if slices.Contains(s.SecurityOpt, "no-new-privileges:true") != (name == "teescope") || s.Restart == "" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestAgent: the agent has the capabilities of the chart's agent, and its image that of the chart.
func TestAgent(t *testing.T) {
	var c composition
	read(t, "compose.yaml", &c)
	agent := c.Services["teescope"]
	var values struct {
		Image struct{ Repository string }
		Agent struct {
			SecurityContext struct {
				Capabilities struct{ Drop, Add []string }
			}
		}
	}
	data, err := os.ReadFile("../../helm/teescope/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	want := values.Agent.SecurityContext.Capabilities
	if len(want.Add) == 0 || !slices.Equal(agent.CapAdd, want.Add) || !slices.Equal(agent.CapDrop, want.Drop) {
		t.Errorf("capabilities +%q -%q, those of the chart are %+v", agent.CapAdd, agent.CapDrop, want)
	}
	if agent.PID != "host" || !agent.ReadOnly || len(agent.Ports)+len(agent.Volumes) > 0 || agent.MemLimit == "" {
		t.Errorf("%+v", agent)
	}
	if !strings.Contains(agent.Image, values.Image.Repository+":") {
		t.Errorf("the image is %s", agent.Image)
	}
}

// TestPrometheus checks the configuration with Debian's promtool, and that it scrapes the agent, which cannot choose its label instance.
func TestPrometheus(t *testing.T) {
	var config struct {
		ScrapeConfigs []struct {
			JobName       string `json:"job_name"`
			HonorLabels   bool   `json:"honor_labels"`
			StaticConfigs []struct {
				Targets []string `json:"targets"`
			} `json:"static_configs"`
		} `json:"scrape_configs"`
		Global    map[string]string `json:"global"`
		RuleFiles []string          `json:"rule_files"`
	}
	read(t, "prometheus.yml", &config)
	job := config.ScrapeConfigs[0]
	if job.JobName != "teescope" || job.HonorLabels || job.StaticConfigs[0].Targets[0] != "teescope:9750" {
		t.Errorf("%+v", job)
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("there is no promtool")
	}
	if out, err := exec.Command("promtool", "check", "config", "--syntax-only", filepath.Join(directory, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDataSource: Grafana has the data source that the dashboards name, at the address of Prometheus.
func TestDataSource(t *testing.T) {
	type sources struct {
		Datasources []map[string]any `json:"datasources"`
	}
	read := func(name string) map[string]any {
		t.Helper()
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s sources
		if err := yaml.Unmarshal(data, &s); err != nil || len(s.Datasources) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		return s.Datasources[0]
	}
	here, there := read(filepath.Join(directory, "datasource.yaml")), read("../../grafana/provisioning/datasources/teescope.yaml")
	if here["uid"] != there["uid"] || here["type"] != there["type"] || here["url"] != "http://prometheus:9090" {
		t.Errorf("%v, and without compose %v", here, there)
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/lib/proctest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// notOurs lists the families of node_exporter that this collector omits: hardware of other machines, statistics of
// file systems, and families that no known dashboard queries.
var notOurs = []string{
	"node_exporter_build_info", "node_textfile_scrape_error", "node_scrape_collector_", "node_os_", "node_dmi_info", "node_selinux_",
	"node_hwmon_", "node_thermal_zone_", "node_cooling_device_", "node_power_supply_", "node_rapl_", "node_edac_", "node_watchdog_",
	"node_cpu_frequency_hertz", "node_cpu_scaling_", "node_cpu_vulnerabilities_info", "node_nvme_", "node_md_", "node_bcachefs_", "node_btrfs_", "node_xfs_", "node_zfs_", "node_bcache_",
	"node_bonding_", "node_infiniband_", "node_fibrechannel_", "node_ipvs_", "node_nfs_", "node_nfsd_", "node_tape_", "node_udp_queues",
	"node_nf_conntrack_stat_", "node_kernel_hung_", "node_network_address_info",
	"node_filesystem_purgeable_bytes", // of macOS, and always zero on Linux
}

// newer lists the labels that node_exporter has added since Debian 12's version.
var newer = map[string]string{"node_disk_info": "rotational", "node_network_info": "adminstate"}

// unsteady lists the families whose value may lie outside the values just before and just after.
var unsteady = []string{
	"node_memory_", "node_procs_", "node_load", "node_sockstat_", "node_netstat_", "node_filefd_", "node_entropy_",
	"node_filesystem_free", "node_filesystem_avail", "node_filesystem_files_free", "node_nf_conntrack_", "node_arp_", "node_timex_",
	"node_softnet_backlog", "node_disk_io_now",
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// startExporter runs node_exporter and returns its address.
func startExporter(t *testing.T) string {
	t.Helper()
	var path string
	for _, name := range []string{"node_exporter", "prometheus-node-exporter"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("neither node_exporter nor prometheus-node-exporter is installed (Debian package prometheus-node-exporter)")
	}
	addr := proctest.FreeAddr(t)
	// Debian's version has other, older filters than node_exporter itself.
	cmd := exec.Command(path, "--web.listen-address="+addr, "--collector.meminfo_numa",
		"--collector.netdev.device-exclude=^$", "--collector.diskstats.device-exclude="+disksIgnored().String(),
		"--collector.filesystem.mount-points-exclude="+mountsIgnored().String(), "--collector.filesystem.fs-types-exclude="+typesIgnored().String(),
		"--collector.netstat.fields="+netstatWanted().String(), "--collector.vmstat.fields="+vmstatWanted().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // it was killed
	})
	url := "http://" + addr + "/metrics"
	waittest.Until(t, "an answer of "+path, func() bool {
		_, err := scrape(url)
		return err == nil
	})
	return url
}

func scrape(url string) (map[string]*dto.MetricFamily, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(string(body)))
}

// series returns the values of a family by labels. It omits empty labels.
func series(f *dto.MetricFamily, without string) map[string]float64 {
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			if l.GetValue() != "" && l.GetName() != without {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
		}
		slices.Sort(labels)
		v := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		all[strings.Join(labels, ",")] = v
	}
	return all
}

// disagreement describes how a family of node_exporter differs from ours just before and just after, or returns "".
func disagreement(before, theirs, after *dto.MetricFamily) string {
	name := theirs.GetName()
	if theirs.GetType() != after.GetType() {
		return fmt.Sprintf("is a %v there and a %v here", theirs.GetType(), after.GetType())
	}
	if help := strings.TrimSuffix(theirs.GetHelp(), "."); help != strings.TrimSuffix(after.GetHelp(), ".") {
		return fmt.Sprintf("has the help %q there and %q here", theirs.GetHelp(), after.GetHelp())
	}
	without := ""
	if label := newer[name]; !hasLabel(theirs, label) {
		without = label
	}
	low, value, high := series(before, without), series(theirs, without), series(after, without)
	for _, labels := range slices.Sorted(maps.Keys(value)) {
		a, okA := low[labels]
		b, okB := high[labels]
		if !okA || !okB {
			return fmt.Sprintf("lacks {%s}; has %v", labels, slices.Sorted(maps.Keys(high)))
		}
		if slack := slackOf(name, a, b); value[labels] < min(a, b)-slack || value[labels] > max(a, b)+slack {
			return fmt.Sprintf("{%s} is %v there, here %v before and %v after", labels, value[labels], a, b)
		}
	}
	for labels := range high {
		if _, ok := value[labels]; !ok {
			return fmt.Sprintf("{%s} is not there", labels)
		}
	}
	return ""
}

func hasLabel(f *dto.MetricFamily, name string) bool {
	return slices.ContainsFunc(f.GetMetric()[0].GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name })
}

// slackOf returns how far a value may lie outside. Both sides keep CPU times at the highest value that they have seen,
// and these values may differ.
func slackOf(name string, a, b float64) float64 {
	switch {
	case strings.HasPrefix(name, "node_cpu_"):
		return 0.03
	case hasPrefix(name, unsteady):
		return math.Abs(a+b)/100 + 3
	}
	return math.Abs(a+b) * 1e-12 // sums of floats
}

// TestNodeExporter compares the collector with a real node_exporter on this machine. Common families have the same
// type, help and labels, and the same value within the time between two reads. The other families of node_exporter
// are listed in notOurs.
func TestNodeExporter(t *testing.T) {
	url := startExporter(t)
	c := New(Options{Proc: "/proc", Sys: "/sys", RootFS: "/"})
	agreed, disagreed := map[string]bool{}, map[string]string{}
	// Other programs change the values on this machine, so each family must agree in one of several rounds.
	for range 20 {
		before, _ := gather(t, c)
		theirs, err := scrape(url)
		if err != nil {
			t.Fatal(err)
		}
		after, _ := gather(t, c)
		for name, family := range theirs {
			if !strings.HasPrefix(name, "node_") || agreed[name] || hasPrefix(name, notOurs) {
				continue
			}
			if before[name] == nil || after[name] == nil {
				disagreed[name] = "is not here"
				continue
			}
			if disagreed[name] = disagreement(before[name], family, after[name]); disagreed[name] == "" {
				agreed[name] = true
				delete(disagreed, name)
			}
		}
		if len(disagreed) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, name := range slices.Sorted(maps.Keys(disagreed)) {
		t.Errorf("%s %s", name, disagreed[name])
	}
	t.Logf("%d families agree", len(agreed))
	if len(agreed) < 150 {
		t.Errorf("only %d families are compared", len(agreed))
	}
}

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linerate/linerate/internal/kernel/nl"
	"github.com/linerate/linerate/internal/kernel/nl/ethtool"
	"github.com/linerate/linerate/internal/kernel/nl/route"
)

// sysctlName returns the knob of a file below /proc/sys, with dots between elements, unless an
// element contains a dot itself.
func sysctlName(rel string) string {
	if !strings.Contains(rel, ".") {
		rel = strings.ReplaceAll(rel, "/", ".")
	}
	return "sysctl:" + rel
}

// volatile lists the files below /proc/sys/net that the kernel itself changes, and one command.
var volatile = []string{"netfilter/nf_conntrack_count", "ipv4/route/flush", "ipv6/route/flush", "core/netdev_rss_key"}

// snapshot writes every setting of this host that a program could change as one JSON object: all of
// /proc/sys/net, the routes with their metrics, and MTU, queue length and features of all
// interfaces. Two snapshots are equal if and only if every value is the same.
func snapshot(c *nl.Client, w io.Writer) error {
	all := map[string]string{}
	const base = "/proc/sys/net"
	// Everything and not only the catalogue: the proof must also cover settings that no knob names.
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel := strings.TrimPrefix(path, base+"/")
		for _, v := range volatile {
			if rel == v {
				return nil
			}
		}
		// Some files are write-only or return an error until set (stable_secret). Unreadable files
		// are not compared.
		if b, err := os.ReadFile(path); err == nil {
			all[sysctlName("net/"+rel)] = strings.Join(strings.Fields(string(b)), " ")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	routes, err := route.New(c).List()
	if err != nil {
		return err
	}
	metrics := []route.Metric{route.MetricWindow, route.MetricMTU, route.MetricAdvMSS, route.MetricInitCwnd,
		route.MetricInitRwnd, route.MetricQuickack}
	for _, r := range routes {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		all["route:"+r.Destination+" dev "+r.Interface] = string(b) // all of the route, beyond its knobs
		for _, m := range metrics {
			if v := r.Metric(m); v != 0 {
				all["route:"+r.Destination+"/"+string(m)] = strconv.Itoa(v)
			}
		}
	}
	links, err := c.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		all["link:"+l.Name+"/mtu"] = strconv.Itoa(l.MTU)
		all["link:"+l.Name+"/txqueuelen"] = strconv.Itoa(l.TxQueueLen)
		features, err := ethtool.New(c).Features(l.Name)
		if errors.Is(err, nl.ErrNotSupported) {
			continue
		} else if err != nil {
			return err
		}
		for name, f := range features {
			all["ethtool:"+l.Name+"/feature."+name] = map[bool]string{true: "on", false: "off"}[f.On]
		}
	}
	return json.NewEncoder(w).Encode(all)
}

package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/linerate/linerate/hub/internal/web"
	"github.com/linerate/linerate/hub/internal/web/page"
)

// fakeNow is the time of the fake hub. The page follows the hub's clock, so a fixed one tests that,
// and makes every run draw the same.
var fakeNow = time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)

// gapFrom and gapTo bound the time in which the fake hub did not run.
var gapFrom, gapTo = fakeNow.Add(-35 * time.Hour), fakeNow.Add(-33 * time.Hour)

// freshSince is the time of the first sample of a fresh hub. It is no multiple of a long step.
var freshSince = fakeNow.Add(time.Minute)

// changed is the time of a change that made the first interface carry more and drop less.
var changed = fakeNow.Add(-20 * time.Hour)

// hostile is a name for interfaces, titles and values, against a page that takes names for markup
// or for queries.
const hostile = `"><img src=x onerror="window.owned=1"><script>window.owned=1</script>{host="x"}\` + "\u202e"

// fake is a hub that answers as the real one does, with figures computed from the time. Its fields
// are set before the first request.
type fake struct {
	interfaces int        // of the first host
	hostile    bool       // names, titles and documents are made to break the page
	empty      bool       // nothing was ever recorded
	loading    bool       // the history is being read
	disk       string     // state of the disk
	status     int        // of every answer of the API that is not 200
	crowded    bool       // a hundred changes within an hour
	pinged     bool       // a measurement each minute, by a schedule
	burst      bool       // the first interface received 40 Gb/s for one second, twenty minutes ago
	fresh      bool       // the first sample is 40 seconds old
	noted      bool       // the hub has four warnings, and two gaps
	long       bool       // interfaces have names as long as they may be
	silent     bool       // the newest sample is minutes old
	password   string     // required; empty: none
	members    *fakeHosts // of the fleet; nil: there is none

	mu       sync.Mutex
	requests []string
	wrong    []string // queries that are no PromQL
}

func (f *fake) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", page.Handler())
	api := map[string]func(r *http.Request) any{
		"/api/linerate/v1/status": f.statusDocument, "/api/linerate/v1/hosts": f.hosts,
		"/api/linerate/v1/events": f.events, "/api/linerate/v1/findings": f.findings,
		"/api/linerate/v1/switches": f.switches,
		"/api/linerate/v1/compare":  f.compare, "/api/linerate/v1/matrix": f.matrix,
		"/api/linerate/v1/documents/{id}": f.document,
		"/api/v1/query":                   f.query, "/api/v1/query_range": f.query,
	}
	mux.HandleFunc("GET /api/linerate/v1/fleet", f.serveFleet)
	mux.HandleFunc("GET /api/linerate/v1/fleet/", f.serveFleet)
	for path, answer := range api {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			f.requests = append(f.requests, r.URL.String())
			status := f.status
			f.mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if status == 0 {
				if a := answer(r); a != nil {
					json.NewEncoder(w).Encode(a)
					return
				}
				status = http.StatusNotFound
			}
			w.WriteHeader(status)
			json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": "fake",
				"error": "as the test wants"})
		})
	}
	if f.password != "" {
		return guarded(t, mux, f.password)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// guarded serves a page as the hub does once it has a password.
func guarded(t *testing.T, h http.Handler, password string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "password")
	if err := web.WritePassword(file, password); err != nil {
		t.Fatal(err)
	}
	s, err := web.Listen(web.Options{Address: "127.0.0.1:0", PasswordFile: file})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Serve(ctx, h) // a test that misses its answers fails by that
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return strings.TrimSuffix(s.URL(), "/")
}

func (f *fake) fail(status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status = status
}

// asked are the requests so far whose address contains a text.
func (f *fake) asked(text string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	for _, r := range f.requests {
		if strings.Contains(r, text) {
			found = append(found, r)
		}
	}
	return found
}

type object = map[string]any

func (f *fake) name(i int) string {
	switch {
	case f.long && i < 4:
		return fmt.Sprintf("enp193s0f%dnp1.4", i)
	case i == 0 && f.hostile:
		return hostile
	case i < 4:
		return fmt.Sprintf("eth%d", i)
	case i == 4:
		return "bond0"
	}
	return fmt.Sprintf("bond0.%d", 95+i)
}

func (f *fake) names() []string {
	if f.empty {
		return nil
	}
	var all []string
	for i := range max(f.interfaces, 1) {
		all = append(all, f.name(i))
	}
	return all
}

func (f *fake) statusDocument(*http.Request) any {
	disk := object{"bytes": 1 << 30, "free_bytes": 5 << 30, "state": "ok", "kept_in_memory_seconds": 0}
	if f.disk != "" {
		disk = object{"bytes": 1 << 30, "free_bytes": 0, "state": f.disk, "since": fakeNow.Add(-3 * time.Minute),
			"kept_in_memory_seconds": 180}
	}
	status := object{"schema": "linerate.hub.status/1", "linerate": "test", "host": "alpha",
		"started": fakeNow.Add(-33 * time.Hour), "now": fakeNow, "retention_seconds": 30 * 86400,
		"oldest": fakeNow.Add(-30 * 24 * time.Hour),
		"disk":   disk, "series": 900, "samples_per_second": 900.0, "loading": f.loading, "warnings": []string{}}
	f.mu.Lock()
	if f.members != nil {
		status["fleet"] = true
	}
	f.mu.Unlock()
	if f.noted {
		status["warnings"] = []string{
			"events: the page does not show tunes and measurements from the command line of this host: only root may " +
				"read them, and `linerate agent` does not run",
			"schedule office: run \"linerate serve\" on office.example.net:5201: connect: connection refused",
			"receiver webhook https://alerts.example.org/0123456789abcdef0123456789abcdef0123456789abcdef: 503",
			"sampling: /sys/class/net/enp193s0f1np1/statistics/rx_missed_errors_of_some_driver: no permission"}
	}
	if f.fresh {
		status["started"], status["oldest"] = freshSince, freshSince
		status["now"] = freshSince.Add(40 * time.Second)
	}
	return status
}

func (f *fake) hosts(*http.Request) any {
	if f.empty {
		return object{"hosts": []any{object{"host": "alpha", "interfaces": []any{}}}}
	}
	var list []any
	for i, name := range f.names() {
		one := object{"name": name, "kind": "ethernet", "driver": "e1000e", "parent": "", "up": i != 3,
			"speed_bits_per_second": 1e9, "mtu_bytes": 1500}
		switch {
		case i == 1:
			one["driver"], one["speed_bits_per_second"] = "ixgbe", 10e9
		case i == 4:
			one["kind"], one["driver"], one["speed_bits_per_second"] = "bond", "bonding", 2e9
		case i > 4:
			one["kind"], one["driver"], one["parent"] = "vlan", "802.1q", "bond0"
		}
		list = append(list, one)
	}
	return object{"schema": "linerate.hub.hosts/1", "hosts": []any{object{"host": "alpha", "interfaces": list},
		object{"host": "beta",
			"interfaces": []any{object{"name": "enp3s0", "kind": "ethernet", "driver": "r8169", "parent": "",
				"up": true, "speed_bits_per_second": 2.5e9, "mtu_bytes": 9000}}}}}
}

// happened is the whole timeline.
func (f *fake) happened() []object {
	if f.empty {
		return []object{}
	}
	at := func(d time.Duration) time.Time { return fakeNow.Add(-d) }
	gap := object{"id": "gap-1", "kind": "gap", "time": gapFrom, "end": gapTo, "host": "alpha",
		"title": "nothing recorded for 2 h: the hub did not run"}
	all := []object{
		{"id": "link-1", "kind": "link", "time": at(46 * time.Hour), "host": "alpha", "subject": f.name(0),
			"title": f.name(0) + " came up at 1 Gb/s"},
		gap,
		{"id": "boot-1", "kind": "reboot", "time": gapTo.Add(-time.Minute), "host": "alpha",
			"title": "alpha was restarted"},
		{"id": "finding-1", "kind": "finding", "time": at(30 * time.Hour), "end": changed, "host": "alpha",
			"subject": f.name(0), "title": "The receive ring of " + f.name(0) + " overflows", "severity": "warning",
			"has_document": true},
		{"id": "run-1", "kind": "run", "time": changed.Add(-25 * time.Minute), "end": changed.Add(2 * time.Minute),
			"host": "alpha", "subject": "beta", "title": "Tuned the path to beta for throughput", "state": "committed",
			"has_document": true},
		{"id": "change-1", "kind": "change", "time": changed, "host": "alpha", "subject": "ethtool:" + f.name(0) +
			"/ring.rx", "title": "ethtool:" + f.name(0) + "/ring.rx: 256 → 4096", "state": "committed",
			"undo": "linerate undo change-1", "has_document": true},
		{"id": "alert-1", "kind": "alert", "time": at(9 * time.Hour), "end": at(8 * time.Hour), "host": "alpha",
			"title": "More than 0.1 % of segments are sent again", "severity": "critical"},
		{"id": "change-2", "kind": "change", "time": at(3 * time.Hour), "host": "alpha",
			"subject": "sysctl:net.ipv4.tcp_rmem", "title": "sysctl:net.ipv4.tcp_rmem", "state": "trial",
			"undo": "linerate undo change-2", "has_document": true},
	}
	for i := range 16 {
		all = append(all, object{"id": fmt.Sprintf("measurement-%d", i), "kind": "measurement",
			"time": at(time.Duration(47-3*i) * time.Hour), "host": "alpha", "subject": "beta",
			"title": "alpha to beta: 937 Mb/s", "has_document": true})
	}
	if f.noted {
		all = append(all, object{"id": "gap-2", "kind": "gap", "time": at(12 * time.Hour), "end": at(11 * time.Hour),
			"host": "alpha", "title": "nothing recorded for 60 min: the hub did not run"})
	}
	if f.crowded {
		for i := range 100 {
			all = append(all, object{"id": fmt.Sprintf("crowd-%d", i), "kind": "change",
				"time": at(5*time.Hour + time.Duration(i)*30*time.Second), "host": "alpha",
				"subject": "sysctl:net.core.somaxconn", "title": "sysctl:net.core.somaxconn", "state": "undone"})
		}
	}
	if f.pinged {
		for i := range 48 * 60 {
			all = append(all, object{"id": fmt.Sprintf("ping-%d", i), "kind": "measurement",
				"time": at(time.Duration(i) * time.Minute), "host": "alpha", "subject": "gamma",
				"title": "alpha to gamma: 0.2 ms"})
		}
	}
	if f.hostile {
		for _, e := range all {
			e["title"] = hostile
		}
	}
	return all
}

func number(r *http.Request, key string) float64 {
	v, _ := strconv.ParseFloat(r.FormValue(key), 64)
	return v
}

func (f *fake) events(r *http.Request) any {
	start, end := number(r, "start"), number(r, "end")
	found := []object{}
	for _, e := range f.happened() {
		from := float64(e["time"].(time.Time).Unix())
		to := from
		if t, ok := e["end"].(time.Time); ok {
			to = float64(t.Unix())
		}
		kind := r.FormValue("kind")
		if to >= start && from <= end && (kind == "" || strings.Contains(","+kind+",", ","+e["kind"].(string)+",")) &&
			(r.FormValue("host") == "" || r.FormValue("host") == e["host"]) {
			found = append(found, e)
		}
	}
	before := len(found)
	found = bounded(found, int(number(r, "limit")), int(number(r, "limit_per_kind")))
	return object{"schema": "linerate.hub.events/1", "events": found, "truncated": len(found) < before}
}

// bounded returns the newest events, of all kinds and of each; 0 is no bound.
func bounded(found []object, limit, perKind int) []object {
	slices.SortStableFunc(found, func(a, b object) int {
		return a["time"].(time.Time).Compare(b["time"].(time.Time))
	})
	seen := make(map[any]int)
	kept := []object{}
	for _, e := range slices.Backward(found) {
		if seen[e["kind"]]++; (limit == 0 || len(kept) < limit) && (perKind == 0 || seen[e["kind"]] <= perKind) {
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

func (f *fake) document(r *http.Request) any {
	id := r.PathValue("id")
	switch {
	case strings.HasPrefix(id, "change-1"):
		return object{"id": id, "time": changed, "knob": "ethtool:" + f.name(0) + "/ring.rx", "side": "near",
			"from": "256", "to": "4096", "state": "committed", "persisted": false,
			"reason": "the receive ring overflows"}
	case strings.HasPrefix(id, "change-2"):
		to := "4096 131072 33554432"
		if f.hostile {
			to = hostile
		}
		return object{"id": id, "time": fakeNow, "knob": "sysctl:net.ipv4.tcp_rmem", "side": "near",
			"from": "4096 131072 6291456", "to": to, "state": "trial", "persisted": false}
	case strings.HasPrefix(id, "measurement"):
		return object{"schema": "linerate.measure/1", "linerate": "test", "time": fakeNow, "target": "beta",
			"tests": []any{
				object{"test": "stream", "direction": "transmit", "duration_seconds": 10, "streams": 4,
					"throughput_bits_per_second": 937.2e6, "retransmits_total": 12,
					"rtt": object{"min_seconds": 0.0002, "p50_seconds": 0.00041, "p99_seconds": 0.0031}},
				object{"test": "ping", "direction": "both", "duration_seconds": 5, "loss_ratio": 0.0,
					"rtt": object{"min_seconds": 0.00019, "p50_seconds": 0.0002, "p99_seconds": 0.0009}}}}
	case id == "run-1":
		return object{"schema": "linerate.tune/1", "goal": "throughput", "state": "committed", "trials": []any{
			object{"knob": "ethtool:eth0/ring.rx", "from": "256", "to": "4096", "side": "near", "pairs": 12,
				"effect_ratio": 1.58, "effect_low_ratio": 1.51, "effect_high_ratio": 1.66, "verdict": "kept"},
			object{"knob": "sysctl:net.core.netdev_budget", "from": "300", "to": "600", "side": "near", "pairs": 12,
				"effect_ratio": 1.002, "effect_low_ratio": 0.99, "effect_high_ratio": 1.01,
				"verdict": "reverted-unproven"}}}
	case strings.HasPrefix(id, "finding"):
		return f.findings(r).(object)["findings"].([]object)[0]
	}
	return nil
}

// switches returns a switch with a hostile alias, and one that is silent.
func (f *fake) switches(*http.Request) any {
	list := []object{}
	if !f.empty {
		port := func(name, alias string, up bool, lost float64) object {
			return object{"name": name, "index": 1, "alias": alias, "enabled": true, "up": up,
				"speed_bits_per_second": 1e9, "duplex": "half", "counter_bits": 64, "over_seconds": 300,
				"receive_bits_per_second": 120e6, "transmit_bits_per_second": 3e6, "receive_errors": 0, "transmit_errors": 0,
				"receive_discards": 0, "transmit_discards": lost, "late_collisions": 0, "attached": []object{},
				"neighbours": []object{{"system": "beta.example.net", "port": "eth0"}}}
		}
		list = append(list,
			object{"name": "core-1", "address": "192.0.2.10", "system_name": "core-1", "description": "A switch",
				"warnings": []string{},
				"ports": []object{port("Gi0/1", "<b>uplink</b>", true, 1234), port("Gi0/2", "", false, 0), port("Gi0/10", "",
					true, 0)}},
			object{"name": "floor-2", "address": "192.0.2.11", "error": "192.0.2.11 does not answer", "ports": []object{},
				"warnings": []string{}})
	}
	return object{"schema": "linerate.hub.switches/1", "switches": list}
}

func (f *fake) findings(*http.Request) any {
	list := []object{}
	if !f.empty {
		title := "TCP sends more than it should again on the way to beta"
		if f.hostile {
			title = hostile
		}
		list = append(list, object{"code": "path-loss", "severity": "warning", "confidence_ratio": 0.9, "title": title,
			"where": "alpha → beta",
			"evidence": []object{{"name": "retransmit_ratio", "value": 0.0043, "unit": "ratio", "source": "TcpExt"},
				{"name": "rtt_p50_seconds", "value": 0.00041, "source": "ping"}},
			"rejected": []string{"the receive ring of alpha: no packet was dropped there",
				"the queueing discipline of alpha: its queue was short"},
			"remedy": object{"text": "Look at the cable and the switch between the hosts: packets are lost on " +
				"the way, not in them.", "knobs": []string{}}},
			object{"code": "rss-imbalance", "severity": "notice", "confidence_ratio": 0.7,
				"title": "One queue of eth0 takes most of what comes in", "where": "eth0",
				"evidence": []object{}, "rejected": []string{},
				"remedy": object{"text": "Spread the queues over more processors.",
					"knobs": []string{"ethtool:eth0/rss.indirection"}}})
	}
	return object{"schema": "linerate.hub.findings/1", "time": fakeNow, "findings": list}
}

func (f *fake) compare(r *http.Request) any {
	side := func(median, p99 float64) object { return object{"median": median, "p99": p99, "samples": 60} }
	row := func(metric, unit string, labels object, before, after object, ratio, low, high float64, moved bool) object {
		return object{"metric": metric, "labels": labels, "unit": unit, "before": before, "after": after,
			"ratio": ratio, "ratio_low": low, "ratio_high": high, "moved": moved}
	}
	eth := object{"interface": r.FormValue("interface")}
	rows := []object{
		row("linerate_interface_drops_total", "packets_per_second", object{"interface": "eth0", "direction": "receive",
			"place": "ring"}, side(41, 260), side(0.2, 3), 0.005, 0.002, 0.011, true),
		row("linerate_interface_transmit_bytes_total", "bytes_per_second", eth, side(38e6, 61e6), side(61e6, 88e6), 1.6,
			1.52, 1.69, true),
		row("linerate_cpu_seconds_total", "ratio", object{"mode": "softirq", "cpu": "1"}, side(0.11, 0.31),
			side(0.14, 0.36), 1.27, 1.18, 1.37, true),
		row("linerate_tcp_retransmits_total", "per_second", object{}, side(3.1, 9), side(3, 9.2), 0.97, 0.85,
			1.11, false),
	}
	rows = append(rows, object{"metric": "linerate_interface_errors_total", "labels": eth, "unit": "packets_per_second",
		"before": side(0, 0), "after": side(0, 0), "moved": false})
	return object{"schema": "linerate.compare/1", "before": object{"start": fakeNow, "end": fakeNow},
		"after": object{"start": fakeNow, "end": fakeNow}, "rows": rows}
}

func (f *fake) matrix(*http.Request) any {
	cells := []object{}
	names := []string{"alpha", "beta", "gamma"}
	for i, from := range names {
		for k, to := range names {
			if from == to || f.empty {
				continue
			}
			cells = append(cells, object{"from": from, "to": to, "test": "stream", "direction": "transmit",
				"time": fakeNow.Add(-time.Hour), "throughput_bits_per_second": 1e8 * float64(1+i+3*k),
				"rtt_p50_seconds": 0.0002 * float64(1+i+k), "loss_ratio": 0.003 * float64(i*k),
				"event": "measurement-1"},
				object{"from": from, "to": to, "test": "ping", "direction": "", "time": fakeNow.Add(-time.Hour),
					"rtt_p50_seconds": 0.0002 * float64(1+i+k), "loss_ratio": 0.0})
		}
	}
	return object{"schema": "linerate.hub.matrix/1", "from": names, "to": names, "cells": cells}
}

// query answers in Prometheus's form. Prometheus's parser parses the query.
func (f *fake) query(r *http.Request) any {
	text := r.FormValue("query")
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		f.mu.Lock()
		f.wrong = append(f.wrong, text+": "+err.Error())
		f.mu.Unlock()
		return nil
	}
	if r.FormValue("step") == "" {
		result := []any{}
		for _, s := range f.evaluate(e, number(r, "time")) {
			result = append(result,
				object{"metric": s.labels,
					"value": []any{number(r, "time"), strconv.FormatFloat(s.value, 'g', 10, 64)}})
		}
		return object{"status": "success", "data": object{"resultType": "vector", "result": result}}
	}
	start, end, step := number(r, "start"), number(r, "end"), number(r, "step")
	rows, order := map[string]object{}, []string{}
	for t := start; t <= end+0.001; t += step {
		for _, s := range f.evaluate(e, t) {
			k := key(s.labels)
			if rows[k] == nil {
				rows[k] = object{"metric": s.labels, "values": []any{}}
				order = append(order, k)
			}
			rows[k]["values"] = append(rows[k]["values"].([]any), []any{t, strconv.FormatFloat(s.value, 'g', 10, 64)})
		}
	}
	result := []any{}
	for _, key := range order {
		result = append(result, rows[key])
	}
	return object{"status": "success", "data": object{"resultType": "matrix", "result": result}}
}

// noise returns a value between 0 and 1, the same for the same arguments.
func noise(name string, t float64) float64 {
	h := uint64(1469598103934665603)
	for _, c := range []byte(name + strconv.FormatInt(int64(t/60), 10)) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 29 // spread the last bytes to the upper bits
	h *= 0xbf58476d1ce4e5b9
	return float64(h>>11) / (1 << 53)
}

// wave is a day with its night, and some noise.
func wave(name string, t float64) float64 {
	return (0.5 + 0.3*math.Sin((t/86400-0.3)*2*math.Pi)) * (0.55 + 0.6*noise(name, t) +
		0.5*math.Pow(noise(name+"burst", t), 8))
}

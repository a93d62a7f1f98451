package world

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/internal/resolver/load"
	"github.com/linerate/linerate/internal/resolver/message"
)

// Variant is a recursor's configuration under test.
type Variant struct {
	Name    string
	Options []string // lines of the configuration
	// Scaled are the same options with times a thirtieth of theirs, for the change of a record; nil:
	// the options have no times.
	Scaled []string
}

// scale is by how much the times of a change are shortened.
const scale = 30

// recordSeconds is the time to live of the world's records.
const recordSeconds = 300

// Variants returns the options that a recursor is compared with. For BIND they are those of the
// write-up, each alone and all that the program accepts together; for the others their
// counterparts.
func Variants(r Recursor) []Variant {
	if r == Knot {
		return []Variant{
			{Name: "default"},
			{Name: "cache of 100k", Options: []string{"cache.size = 100 * kB"}},
			{Name: "cache.max_ttl(60)", Options: []string{"cache.max_ttl(60)"}, Scaled: []string{"cache.max_ttl(2)"}},
			{Name: "log_level('debug')", Options: []string{"log_level('debug')"}},
			{Name: "together", Options: []string{"cache.size = 100 * kB", "cache.max_ttl(60)", "log_level('debug')"},
				Scaled: []string{"cache.size = 100 * kB", "cache.max_ttl(2)", "log_level('debug')"}},
		}
	}
	if r == Unbound {
		small := []string{"msg-cache-size: 100k", "rrset-cache-size: 100k"}
		return []Variant{
			{Name: "default"},
			{Name: "caches of 100k", Options: small},
			{Name: "cache-max-ttl: 60", Options: []string{"cache-max-ttl: 60"}, Scaled: []string{"cache-max-ttl: 2"}},
			{Name: "cache-max-negative-ttl: 60", Options: []string{"cache-max-negative-ttl: 60"},
				Scaled: []string{"cache-max-negative-ttl: 2"}},
			{Name: "together", Options: append([]string{"cache-max-ttl: 60", "cache-max-negative-ttl: 60"}, small...),
				Scaled: append([]string{"cache-max-ttl: 2", "cache-max-negative-ttl: 2"}, small...)},
		}
	}
	plain := []string{"recursive-clients 1000000;", `version "xxxOK";`, "max-cache-size 100K;"}
	all := []Variant{{Name: "default"}}
	for _, o := range plain {
		all = append(all, Variant{Name: strings.TrimSuffix(o, ";"), Options: []string{o}})
	}
	together := Variant{Name: "together, without cleaning-interval", Options: plain, Scaled: plain}
	for _, o := range []string{"lame-ttl 900;", "max-ncache-ttl 60;", "max-cache-ttl 60;"} {
		name, _, _ := strings.Cut(o, " ")
		scaled := name + " 2;"
		if name == "lame-ttl" {
			scaled = "lame-ttl 30;"
		}
		all = append(all, Variant{Name: strings.TrimSuffix(o, ";"), Options: []string{o}, Scaled: []string{scaled}})
		together.Options = append(together.Options[:len(together.Options):len(together.Options)], o)
		together.Scaled = append(together.Scaled[:len(together.Scaled):len(together.Scaled)], scaled)
	}
	return append(all, Variant{Name: "cleaning-interval 1", Options: []string{"cleaning-interval 1;"}}, together)
}

// Options describe a comparison.
type Options struct {
	Recursor Recursor
	Names    int           // asked for, all equally often; default 20 000
	Duration time.Duration // of each load; default 3 s
	Fresh    bool          // measure how long a changed record stays hidden
	Dir      string        // for configurations; the caller removes it
	Only     []string      // names of variants; empty: all
}

// Row is one variant's result.
type Row struct {
	Name             string   `json:"name"`
	Options          []string `json:"options"`
	Started          bool     `json:"started"`
	Why              string   `json:"why,omitempty"` // it did not start
	QueriesPerSecond float64  `json:"queries_per_second,omitempty"`
	AnswersPerSecond float64  `json:"answers_per_second,omitempty"`
	LossRatio        float64  `json:"loss_ratio"`
	WrongTotal       uint64   `json:"wrong_total"`
	P50Seconds       float64  `json:"p50_seconds,omitempty"`
	P99Seconds       float64  `json:"p99_seconds,omitempty"`
	// CacheHitRatio is of the measured load, from the recursor's own counters.
	CacheHitRatio *float64 `json:"cache_hit_ratio,omitempty"`
	Evictions     *uint64  `json:"evictions_total,omitempty"` // for lack of room, during the load
	Upstream      uint64   `json:"upstream_queries_total"`    // to the world's servers, during the load
	// FreshSeconds is how long the old data of a changed record were served, times the factor by which
	// the world's times are shortened. FreshMeasuredSeconds is the time as measured.
	FreshSeconds         *float64 `json:"fresh_seconds,omitempty"`
	FreshMeasuredSeconds *float64 `json:"fresh_measured_seconds,omitempty"`
	// Remarks are lines of the recursor's log about the options.
	Remarks []string `json:"remarks,omitempty"`
	// Wrong is of WrongTotal. A recursor that lacks processor time answers SERVFAIL (other-code).
	Wrong []load.KindCount `json:"wrong,omitempty"`
}

// Compare runs every variant in the namespace of the caller, which has the world's addresses; see
// [Enter]. The function each gets a row as soon as it is measured.
func Compare(ctx context.Context, o Options, each func(Row)) ([]Row, error) {
	if o.Names == 0 {
		o.Names = 20_000
	}
	if o.Duration == 0 {
		o.Duration = 3 * time.Second
	}
	watch, err := watchDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	defer watch.Close() // every recursor has ended
	var rows []Row
	for i, v := range Variants(o.Recursor) {
		if len(o.Only) > 0 && !slices.Contains(o.Only, v.Name) {
			continue
		}
		row, err := o.variant(ctx, v, filepath.Join(o.Dir, fmt.Sprint(i)))
		if err != nil {
			return rows, fmt.Errorf("compare %s: %w", v.Name, err)
		}
		rows = append(rows, row)
		each(row)
	}
	return rows, nil
}

// zones makes the world: three zones, and three servers of the leaf of which one is slow and loses
// queries, and one is lame.
func zones(ttl, freshTTL uint32) (leaf *zone, servers []authority) {
	leaf = &zone{origin: "bench.test.", ttl: ttl, freshTTL: freshTTL, servers: map[string]netip.Addr{
		"ns1.bench.test.": leafAt[0], "ns2.bench.test.": leafAt[1], "ns3.bench.test.": leafAt[2]}}
	leaf.fresh.Store(firstData)
	top := &zone{origin: "test.", ttl: 3600, servers: map[string]netip.Addr{"ns.test.": topAt}, below: leaf}
	root := &zone{origin: ".", ttl: 3600, servers: map[string]netip.Addr{"a.root.": rootAt}, below: top}
	return leaf, []authority{
		{address: rootAt, zone: root}, {address: topAt, zone: top}, {address: leafAt[0], zone: leaf},
		{address: leafAt[1], zone: leaf, delay: 5 * time.Millisecond, loss: 0.05},
		{address: leafAt[2], zone: leaf, lame: true},
	}
}

// The data of the changing record: 198.51.100.1, then 198.51.100.2.
const (
	firstData  = 198<<24 | 51<<16 | 100<<8 | 1
	secondData = firstData + 1
)

// variant measures one configuration.
func (o Options) variant(ctx context.Context, v Variant, dir string) (Row, error) {
	row := Row{Name: v.Name, Options: append([]string{}, v.Options...)}
	var net network
	defer net.close()
	_, servers := zones(recordSeconds, recordSeconds)
	if err := net.serve(servers); err != nil {
		return row, err
	}
	r, err := start(ctx, o.Recursor, dir, v.Options, 1)
	if err != nil {
		return row, err
	}
	err = o.load(ctx, r, &net, &row)
	r.stop()
	row.Remarks = remarks(r.lines(), v.Options)
	var ended *NotStartedError
	if errors.As(err, &ended) {
		row.Why = ended.Reason
		return row, nil
	}
	if err != nil || !o.Fresh {
		return row, err
	}
	net.close()
	return row, o.fresh(ctx, v, dir+"-fresh", &row)
}

// load warms the cache and measures.
func (o Options) load(ctx context.Context, r *running, n *network, row *Row) error {
	if err := r.await(ctx); err != nil {
		return err
	}
	row.Started = true
	warm, set, err := Names(o.Names)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(recursorAt, 53)
	// Every name once; what is lost under this load is asked for again by the measured one.
	if _, err := load.Run(ctx, load.Options{Server: at, Mode: load.Closed, Queries: uint64(o.Names), Outstanding: 50,
		Duration: time.Minute, Timeout: 3 * time.Second, Names: warm}, nil); err != nil {
		return err
	}
	before, err := r.counters(ctx)
	if err != nil {
		return err
	}
	asked := n.count.Load()
	result, err := load.Run(ctx, load.Options{Server: at, Mode: load.Closed, Outstanding: 100, Duration: o.Duration,
		Timeout: 3 * time.Second, Names: set}, nil)
	if err != nil {
		return err
	}
	after, err := r.counters(ctx)
	if err != nil {
		return err
	}
	row.Upstream = n.count.Load() - asked
	row.QueriesPerSecond, row.AnswersPerSecond = result.QueriesPerSecond, result.AnswersPerSecond
	row.LossRatio, row.WrongTotal, row.Wrong = result.LossRatio, result.WrongTotal, result.Wrong
	if result.Latency != nil {
		row.P50Seconds, row.P99Seconds = result.Latency.P50, result.Latency.P99
	}
	hits, misses := after.Hits-before.Hits, after.Misses-before.Misses
	if all := hits + misses; all > 0 {
		ratio := float64(hits) / float64(all)
		row.CacheHitRatio = &ratio
	}
	if before.Evictions != nil && after.Evictions != nil {
		evictions := *after.Evictions - *before.Evictions
		row.Evictions = &evictions
	}
	return nil
}

// fresh changes a record that the recursor has just cached, and waits for the new data.
func (o Options) fresh(ctx context.Context, v Variant, dir string, row *Row) error {
	var net network
	defer net.close()
	leaf, servers := zones(recordSeconds/scale, recordSeconds/scale)
	if err := net.serve(servers); err != nil {
		return err
	}
	options := v.Options
	if v.Scaled != nil {
		options = v.Scaled
	}
	if o.Recursor == BIND {
		// named fetches popular records again two seconds before their end (prefetch), which is a fifth
		// of the shortened time to live and less than a hundredth of the real one.
		options = append([]string{"prefetch 0;"}, options...)
	}
	r, err := start(ctx, o.Recursor, dir, options, 1)
	if err != nil {
		return err
	}
	defer r.stop()
	if err := r.await(ctx); err != nil {
		return err
	}
	if data, err := askFresh(ctx); err != nil || data != firstData {
		return fmt.Errorf("ask for the record that changes: %x, %w", data, err)
	}
	changed := time.Now()
	leaf.fresh.Store(secondData)
	for time.Since(changed) < 4*recordSeconds/scale*time.Second {
		data, err := askFresh(ctx)
		if err != nil {
			return err
		}
		if data == secondData {
			measured := time.Since(changed).Seconds()
			scaled := measured * scale
			row.FreshSeconds, row.FreshMeasuredSeconds = &scaled, &measured
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil // it was not seen: absent
}

// askFresh asks the recursor for the record that changes.
func askFresh(ctx context.Context) (uint32, error) {
	wire, err := message.AppendName(nil, freshName+"bench.test.")
	if err != nil {
		return 0, err
	}
	q := message.AppendQuery(nil, wire, message.TypeA, message.QueryOptions{Recursion: true})
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", netip.AddrPortFrom(recursorAt, 53).String())
	if err != nil {
		return 0, err
	}
	defer conn.Close() // nothing is unwritten
	b := make([]byte, 4096)
	for range 10 {
		if err := conn.SetDeadline(time.Now().Add(3 * time.Second)); err != nil {
			return 0, err
		}
		if _, err := conn.Write(q); err != nil {
			return 0, err
		}
		n, err := conn.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return 0, err
		}
		var a message.Answer
		if message.Check(b[:n], q[message.HeaderBytes:], &a) == message.Sound && a.Code == message.NoError && n >= 4 &&
			a.Records == 1 {
			data, ok := a.FirstAddress(b[:n])
			if ok {
				return binary.BigEndian.Uint32(data), nil
			}
		}
	}
	return 0, errors.New("the recursor does not answer")
}

// await waits until the recursor answers, or has ended.
func (r *running) await(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		select {
		case <-r.ended:
			return &NotStartedError{r.kind.program(), r.reason()}
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		conn, err := net.Dial("udp", netip.AddrPortFrom(recursorAt, 53).String())
		if err != nil {
			return err
		}
		wire := []byte{0}
		q := message.AppendQuery(nil, wire, message.TypeNS, message.QueryOptions{})
		_ = conn.SetDeadline(time.Now().Add(time.Second)) // a socket that was just opened accepts it
		_, err = conn.Write(q)
		if err == nil {
			_, err = conn.Read(make([]byte, 4096))
		}
		_ = conn.Close() // nothing is unwritten
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("start %s: it does not answer within a minute", r.kind.program())
}

// remarks returns the lines of a log about the configuration file that name an option, each once.
func remarks(lines, options []string) []string {
	var found []string
	for _, line := range lines {
		for _, o := range options {
			name := optionName(o)
			text := withoutPlace(line)
			if strings.Contains(text, ".conf:") && strings.Contains(text, name) && !slices.Contains(found, text) &&
				len(found) < mostRemarks {
				found = append(found, text)
			}
		}
	}
	return found
}

const mostRemarks = 10

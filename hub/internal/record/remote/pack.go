package remote

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/compression"

	"github.com/linerate/linerate/internal/host/sample"
)

// maxSamples is the bound of one request; a larger reading goes out whole.
const maxSamples = 10_000

// packer gathers readings into a request.
type packer struct {
	host    string
	known   map[*sample.Series]*gathered
	order   []*gathered // series with samples
	samples int
	round   int
}

type gathered struct {
	labels  []byte // as in a request
	samples []point
	round   int // last round in which it had samples
}

type point struct {
	ms int64
	v  float64
}

func newPacker(host string) packer {
	return packer{host: host, known: make(map[*sample.Series]*gathered)}
}

func (p *packer) add(r *sample.Reading) {
	ms := r.Time.UnixMilli()
	for _, point := range r.Points {
		p.sample(point.Series, ms, point.Value)
	}
	for _, ended := range r.Ended {
		p.sample(ended, ms, math.Float64frombits(value.StaleNaN))
	}
}

func (p *packer) sample(of *sample.Series, ms int64, v float64) {
	g := p.known[of]
	if g == nil {
		g = &gathered{labels: p.labels(of)}
		p.known[of] = g
	}
	if len(g.samples) == 0 {
		p.order = append(p.order, g)
	}
	g.round = p.round
	g.samples = append(g.samples, point{ms, v})
	p.samples++
}

func (p *packer) labels(of *sample.Series) []byte {
	all := [][2]string{{"__name__", of.Metric.Name}}
	if p.host != "" {
		all = append(all, [2]string{"host", p.host})
	}
	for i, name := range of.Metric.Labels {
		if of.Values[i] != "" {
			all = append(all, [2]string{name, strings.ToValidUTF8(of.Values[i], "\ufffd")})
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var out, one []byte
	for _, l := range all {
		one = appendBytes(one[:0], 1, l[0])
		one = appendBytes(one, 2, l[1])
		out = appendBytes(out, 1, one)
	}
	return out
}

// The protocol buffer wire types of a request.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

func appendBytes[T string | []byte](b []byte, field uint64, v T) []byte {
	b = binary.AppendUvarint(b, field<<3|wireBytes)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// pack returns the body of a request, and begins the next. It drops series without samples in two
// requests.
func (p *packer) pack() ([]byte, error) {
	// WriteRequest{repeated TimeSeries timeseries = 1}, TimeSeries{repeated Label labels = 1;
	// repeated Sample samples = 2}, Label{string name = 1; string value = 2}, Sample{double value =
	// 1; int64 timestamp = 2}
	var raw, series, one []byte
	for _, g := range p.order {
		series = append(series[:0], g.labels...)
		for _, s := range g.samples {
			one = binary.AppendUvarint(one[:0], 1<<3|wireFixed64)
			one = binary.LittleEndian.AppendUint64(one, math.Float64bits(s.v))
			one = binary.AppendUvarint(one, 2<<3|wireVarint)
			one = binary.AppendUvarint(one, uint64(s.ms))
			series = appendBytes(series, 2, one)
		}
		raw = appendBytes(raw, 1, series)
	}
	for _, g := range p.order {
		g.samples = g.samples[:0]
	}
	p.order, p.samples = p.order[:0], 0
	p.round++
	for series, g := range p.known {
		if p.round-g.round > 2 {
			delete(p.known, series)
		}
	}
	body, err := compression.Encode(compression.Snappy, raw, nil)
	if err != nil {
		return nil, fmt.Errorf("pack samples: %w", err)
	}
	return body, nil
}

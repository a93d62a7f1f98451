package api

import (
	"bufio"
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/base/visible"
	"github.com/linerate/linerate/internal/host/sample"
)

// metrics writes the last readings as text, for a Prometheus server that scrapes the hub. Series
// have the names and labels of the store, host included, so that one dashboard fits both. They have
// no times: the scraper sets them. People read it with curl, so hidden runes of a name become
// U+FFFD.
func (a *api) metrics(w http.ResponseWriter, _ *http.Request) error {
	var points []sample.Point
	if a.Readings != nil {
		for _, r := range a.Readings() {
			if r != nil {
				points = append(points, r.Points...)
			}
		}
	}
	// The format requires the series of one metric together.
	slices.SortStableFunc(points,
		func(x, y sample.Point) int { return cmp.Compare(x.Series.Metric.Name, y.Series.Metric.Name) })
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	out := bufio.NewWriterSize(w, 32<<10)
	var b []byte
	var last string
	for _, p := range points {
		m := p.Series.Metric
		b = b[:0]
		if m.Name != last {
			last = m.Name
			b = append(b, "# HELP "+m.Name+" "+helpText.Replace(m.Help)+"\n# TYPE "+m.Name+" "+kind(m)+"\n"...)
		}
		b = append(b, m.Name+`{host="`+labelText.Replace(visible.Text(a.Host))+`"`...)
		for i, name := range m.Labels {
			b = append(b, ","+name+`="`+labelText.Replace(visible.Text(p.Series.Values[i]))+`"`...)
		}
		b = append(b, "} "...)
		b = appendFloat(b, p.Value)
		_, _ = out.Write(append(b, '\n'))
	}
	_ = out.Flush()
	return nil
}

var (
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

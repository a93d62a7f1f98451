package rows

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Format is how a table is written.
type Format string

// The formats.
const (
	CSV        Format = "csv"
	Prometheus Format = "prometheus"
	Influx     Format = "influx"
)

// Formats returns the names of all formats.
func Formats() []Format { return []Format{CSV, Prometheus, Influx} }

// Table is a document as rows.
type Table struct {
	Name   string // what a row is, such as measure; names of metrics begin with linerate_ and it
	Labels []string
	Values []Value
	Rows   []Row
}

// Value is one column of numbers. A name that ends in _total is a counter, every other a gauge.
type Value struct {
	Name string
	Help string // one sentence without its full stop
}

// Row is one row of a table.
type Row struct {
	Time   time.Time
	Labels []string  // as many as the table has; empty: not known
	Values []float64 // as many as the table has; NaN: not known
}

// Prefix begins every name in the formats of Prometheus and InfluxDB.
const Prefix = "linerate_"

// Write writes a table.
func Write(w io.Writer, f Format, t Table) error {
	b := bufio.NewWriter(w)
	var err error
	switch f {
	case CSV:
		err = writeCSV(b, t)
	case Prometheus:
		writePrometheus(b, t)
	case Influx:
		writeInflux(b, t)
	default:
		return fmt.Errorf("write table: no format %q", f)
	}
	if flushed := b.Flush(); err == nil {
		err = flushed
	}
	return err
}

func writeCSV(w io.Writer, t Table) error {
	c := csv.NewWriter(w)
	record := append([]string{"time"}, t.Labels...)
	for _, v := range t.Values {
		record = append(record, v.Name)
	}
	_ = c.Write(record) // Error returns the first error
	for _, r := range t.Rows {
		record = append(record[:0], r.Time.UTC().Format(time.RFC3339Nano))
		record = append(record, r.Labels...)
		for _, v := range r.Values {
			text := ""
			if known(v) {
				text = number(v)
			}
			record = append(record, text)
		}
		_ = c.Write(record) // as above
	}
	c.Flush()
	return c.Error()
}

// promLabel escapes the value of a label.
var promLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// writePrometheus writes the metrics one after the other, because the format wants all samples of
// one together. A metric that no row has is left out.
func writePrometheus(w io.Writer, t Table) {
	for i, v := range t.Values {
		name, kind := Prefix+t.Name+"_"+v.Name, "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		if !slices.ContainsFunc(t.Rows, func(r Row) bool { return known(r.Values[i]) }) {
			continue
		}
		fmt.Fprintf(w, "# HELP %s %s.\n# TYPE %s %s\n", name, v.Help, name, kind)
		for _, r := range t.Rows {
			if !known(r.Values[i]) {
				continue
			}
			var labels []string
			for n, l := range r.Labels {
				if l != "" {
					labels = append(labels, t.Labels[n]+`="`+promLabel.Replace(strings.ToValidUTF8(l, "\uFFFD"))+`"`)
				}
			}
			fmt.Fprintf(w, "%s{%s} %s\n", name, strings.Join(labels, ","), number(r.Values[i]))
		}
	}
}

// influxTag escapes a tag. A backslash escapes only these characters, so one that precedes none of
// them is itself; at the end it would escape the separator, so a blank follows it. Line ends cannot
// be escaped.
var influxTag = strings.NewReplacer(",", `\,`, "=", `\=`, " ", `\ `, "\n", `\ `, "\r", `\ `)

func writeInflux(w io.Writer, t Table) {
	for _, r := range t.Rows {
		var fields []string
		for i, v := range t.Values {
			if known(r.Values[i]) {
				fields = append(fields, v.Name+"="+number(r.Values[i]))
			}
		}
		if len(fields) == 0 {
			continue // a point without a field is an error of the protocol
		}
		fmt.Fprint(w, Prefix+t.Name)
		for n, l := range r.Labels {
			if l == "" {
				continue
			}
			if strings.HasSuffix(l, `\`) {
				l += " "
			}
			fmt.Fprintf(w, ",%s=%s", t.Labels[n], influxTag.Replace(strings.ToValidUTF8(l, "\uFFFD")))
		}
		fmt.Fprintf(w, " %s %d\n", strings.Join(fields, ","), r.Time.UnixNano())
	}
}

func known(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number writes a number as short as it can be read back exactly.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

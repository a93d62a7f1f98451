package api

import (
	"bufio"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// size returns about how many bytes an answer has, or a little less: 34 for each point, and the
// labels.
func size(value parser.Value) int {
	const point = 34
	n := 0
	named := func(l labels.Labels) {
		l.Range(func(l labels.Label) { n += len(l.Name) + len(l.Value) + 6 })
	}
	switch v := value.(type) {
	case promql.Matrix:
		for _, s := range v {
			named(s.Metric)
			n += point * len(s.Floats)
		}
	case promql.Vector:
		for _, s := range v {
			named(s.Metric)
			n += point
		}
	case promql.String:
		n = len(v.V)
	}
	return n
}

// stream writes a result as Prometheus does, without holding its text in memory.
func stream(w http.ResponseWriter, value parser.Value, warnings, infos []string) error {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	put := func(b []byte) { _, _ = out.Write(b) } // an error stays in the writer until Flush
	var b []byte
	b = append(b, `{"status":"success","data":{"resultType":"`...)
	b = append(b, value.Type()...)
	b = append(b, `","result":`...)
	switch v := value.(type) {
	case promql.Matrix:
		b = append(b, '[')
		for i, s := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"metric":`...)
			b = appendLabels(b, s.Metric)
			if len(s.Floats) > 0 {
				b = append(b, `,"values":[`...)
				for j, p := range s.Floats {
					if j > 0 {
						b = append(b, ',')
					}
					b = appendPoint(b, p.T, p.F)
					if len(b) > 16<<10 {
						put(b)
						b = b[:0]
					}
				}
				b = append(b, ']')
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	case promql.Vector:
		b = append(b, '[')
		for i, s := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"metric":`...)
			b = appendLabels(b, s.Metric)
			b = append(b, `,"value":`...)
			b = appendPoint(b, s.T, s.F)
			b = append(b, '}')
			if len(b) > 16<<10 {
				put(b)
				b = b[:0]
			}
		}
		b = append(b, ']')
	default: // numbers and texts have their own marshallers
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		b = append(b, text...)
	}
	b = append(b, '}')
	b = appendRemarks(b, "warnings", warnings)
	b = appendRemarks(b, "infos", infos)
	put(append(b, '}'))
	_ = out.Flush() // the client disconnected: it gets no error
	return nil
}

// streamLabels writes the answer of series.
func streamLabels(w http.ResponseWriter, all []labels.Labels, warnings []string) error {
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 32<<10)
	b := []byte(`{"status":"success","data":[`)
	for i, l := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLabels(b, l)
		if len(b) > 16<<10 {
			_, _ = out.Write(b)
			b = b[:0]
		}
	}
	b = append(b, ']')
	b = appendRemarks(b, "warnings", warnings)
	_, _ = out.Write(append(b, '}'))
	_ = out.Flush()
	return nil
}

func appendRemarks(b []byte, key string, remarks []string) []byte {
	if len(remarks) == 0 {
		return b
	}
	text, err := json.Marshal(remarks)
	if err != nil {
		return b // cannot happen: they are texts
	}
	b = append(b, `,"`...)
	b = append(b, key...)
	b = append(b, `":`...)
	return append(b, text...)
}

func appendLabels(b []byte, all labels.Labels) []byte {
	b = append(b, '{')
	begun := false
	all.Range(func(l labels.Label) {
		if begun {
			b = append(b, ',')
		}
		begun = true
		b = appendText(b, l.Name)
		b = append(b, ':')
		b = appendText(b, l.Value)
	})
	return append(b, '}')
}

// appendPoint writes [seconds, "value"].
func appendPoint(b []byte, ms int64, value float64) []byte {
	b = append(b, '[')
	if ms < 0 {
		b = append(b, '-')
		ms = -ms
	}
	b = strconv.AppendInt(b, ms/1000, 10)
	if part := ms % 1000; part != 0 {
		b = append(b, '.', byte('0'+part/100), byte('0'+part/10%10), byte('0'+part%10))
	}
	b = append(b, ',', '"')
	b = appendFloat(b, value)
	return append(b, '"', ']')
}

// appendFloat appends the shortest text that parses as the same number, as JavaScript does.
func appendFloat(b []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64)
}

// appendText appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				b = append(b, '\\', c)
			case c == '\n':
				b = append(b, '\\', 'n')
			case c == '\r':
				b = append(b, '\\', 'r')
			case c == '\t':
				b = append(b, '\\', 't')
			case c < 0x20:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			default:
				b = append(b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		b = utf8.AppendRune(b, r)
		i += n
	}
	return append(b, '"')
}

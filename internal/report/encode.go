package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/linerate/linerate/internal/base/visible"
	"strings"
)

// Encode writes a document as one line of JSON, so that several documents make a stream of lines.
// HTML characters are not escaped. It fails, and writes nothing, when the document holds a number
// that JSON cannot carry.
func Encode(w io.Writer, doc any) error { return encode(w, doc, "") }

// EncodeIndent is Encode over several lines, for readers and golden files.
func EncodeIndent(w io.Writer, doc any) error { return encode(w, doc, "  ") }

// The document is complete in memory before the first byte goes out, so that a pipe never gets half
// of one.
func encode(w io.Writer, doc any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("encode %T: %w", doc, err)
	}
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// escaped writes what a terminal would obey as \u escapes, which mean the same to a JSON parser.
// encoding/json leaves the control characters of C1 and marks of direction as they are. Outside of
// strings JSON is ASCII, so every such rune is in one.
func escaped(document []byte) []byte {
	if !bytes.ContainsFunc(document, obeyed) {
		return document
	}
	var out []byte
	for _, r := range string(document) {
		if obeyed(r) {
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func obeyed(r rune) bool { return r > '~' && visible.Hidden(r) }

// FillSlices makes every nil slice that its key promises (no omitempty) an empty one, so that
// readers find [] and never null. It works in place on a pointer to a document, through structs,
// slices and pointers. Every constructor of a document ends with it.
func FillSlices(doc any) { fill(reflect.ValueOf(doc)) }

// fill uses reflection so that every new list keeps the promise without further code. It leaves
// unexported fields and maps alone.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				fill(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			fv := v.Field(i)
			if fv.Kind() == reflect.Slice && fv.IsNil() && fv.CanSet() &&
				!strings.Contains(f.Tag.Get("json"), ",omitempty") {
				fv.Set(reflect.MakeSlice(fv.Type(), 0, 0))
			}
			fill(fv)
		}
	}
}

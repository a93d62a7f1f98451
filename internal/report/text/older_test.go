package text_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/reporttest"
	"github.com/linerate/linerate/internal/report/text"
)

// TestOlderDocuments shows every document without each of its keys in turn, as a version wrote it
// that did not have that key yet, and without all of them. A missing key is not known: it is
// neither a panic nor a figure that is no number.
func TestOlderDocuments(t *testing.T) {
	t.Parallel()
	stride, key := testenv.Sample(1, 11), 0
	bad := regexp.MustCompile(`NaN|[+-]Inf|%!|<nil>`)
	for _, d := range reporttest.Documents(t) {
		whole, err := json.Marshal(d.Doc)
		if err != nil {
			t.Fatal(err)
		}
		var tree any
		if err := json.Unmarshal(whole, &tree); err != nil {
			t.Fatal(err)
		}
		shown := func(what string) {
			b, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			doc := reflect.New(reflect.TypeOf(d.Doc).Elem()).Interface()
			if err := json.Unmarshal(b, doc); err != nil {
				return // a type with a reader of its own refuses it
			}
			if _, read := doc.(*report.ProfileDocument); read {
				if _, err := report.DecodeProfile(b); err != nil {
					return
				}
			}
			var out bytes.Buffer
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("%s without %s: %v", d.Name, what, r)
				}
			}()
			if err := show(&out, d.Name, doc, text.Style{Width: 80}); err != nil && !errors.Is(err, errNoText) {
				t.Errorf("%s without %s: %v", d.Name, what, err)
			}
			if found := bad.FindString(out.String()); found != "" {
				t.Errorf("%s without %s shows %s", d.Name, what, found)
			}
		}
		without(tree, "", func(path string) {
			// No file has these: one command makes and shows them, always with these parts.
			if key++; key%stride == 0 && !slices.Contains(made, strings.SplitN(d.Name, "-", 2)[0]+path) {
				shown(path)
			}
		})
		if tree = (map[string]any{}); !strings.HasPrefix(d.Name, "report") {
			shown("all keys")
		}
	}
}

// made are the parts of documents without which none exists.
var made = []string{"report.tune", "report.again", "nfs.server", "nfs.baseline"}

// without removes each key below a value, calls f, and puts the key back. Of a list it tries the
// first element.
func without(value any, path string, f func(path string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			was := v[key]
			delete(v, key)
			f(path + "." + key)
			v[key] = was
			without(was, path+"."+key, f)
		}
	case []any:
		if len(v) > 0 {
			without(v[0], fmt.Sprintf("%s[0]", path), f)
		}
	}
}

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Validate checks one JSON document against the schema that it names: every promised key is
// present, no other key is, no key is given twice, types and closed sets of values hold. Further
// documents are those of wings above this one. The error names the place, as in
// findings[0].severity.
//
// It implements the part of JSON Schema that [Schema] has; a library would be for the tests alone.
func Validate(doc []byte, further ...Described) error {
	value, err := decodeStrict(doc)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("read document: not a JSON object")
	}
	name, _ := object["schema"].(string)
	all := slices.Concat(documents, further)
	i := slices.IndexFunc(all, func(d Described) bool { return d.Name == name })
	if i < 0 {
		return fmt.Errorf("read document: no schema %q", name)
	}
	s := schemaOf(name, reflect.TypeOf(all[i].Value))
	if err := s.check(s, "", value); err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	return nil
}

// decodeStrict reads one JSON value and nothing after it. It refuses an object with a key given
// twice, which encoding/json accepts.
//
// Numbers stay texts (json.Number), because a float64 cannot hold a counter above 2^53.
func decodeStrict(doc []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	v, err := decodeValue(d, "")
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// decodeValue reads one value token by token, because only tokens show a duplicate key.
func decodeValue(d *json.Decoder, place string) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, fmt.Sprintf("%s[%d]", place, len(list)))
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	}
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("%s: key is not a string", place)
		}
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("%s: key given twice", join(place, key))
		}
		if object[key], err = decodeValue(d, join(place, key)); err != nil {
			return nil, err
		}
	}
	_, err = d.Token()
	return object, err
}

// join makes the path of a key for messages.
func join(place, key string) string { return strings.TrimPrefix(place+"."+key, ".") }

// check checks a value against s; root has the definitions. The generator writes no keys beside a
// reference.
func (s *Schema) check(root *Schema, place string, value any) error {
	if s.Ref != "" {
		return root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")].check(root, place, value)
	}
	if s.Const != "" {
		if value != s.Const {
			return fmt.Errorf("%s: %v is not %q", place, value, s.Const)
		}
		return nil
	}
	if kind := kindOf(value); !s.allows(kind) {
		return fmt.Errorf("%s: is %s, want %v", place, kind, s.Type)
	}
	switch v := value.(type) {
	case string:
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			return fmt.Errorf("%s: %q is not one of %s", place, v, strings.Join(s.Enum, ", "))
		}
		if s.Format == "date-time" {
			if _, err := time.Parse(time.RFC3339Nano, v); err != nil {
				return fmt.Errorf("%s: %q is not a time of RFC 3339", place, v)
			}
		}
	case json.Number:
		x, err := v.Float64()
		if err != nil || math.IsInf(x, 0) || s.Minimum != nil && x < *s.Minimum {
			return fmt.Errorf("%s: number %s is out of range", place, v)
		}
	case []any:
		for i, item := range v {
			if err := s.Items.check(root, fmt.Sprintf("%s[%d]", place, i), item); err != nil {
				return err
			}
		}
	case map[string]any:
		return s.checkObject(root, place, v)
	}
	return nil
}

// checkObject checks the keys of an object. A map has no fixed keys; its values share one schema.
func (s *Schema) checkObject(root *Schema, place string, object map[string]any) error {
	for _, key := range s.Required {
		if _, ok := object[key]; !ok {
			return fmt.Errorf("%s: missing", join(place, key))
		}
	}
	for key, value := range object {
		p, ok := s.Properties[key]
		if !ok {
			if p, ok = s.AdditionalProperties.(*Schema); !ok {
				return fmt.Errorf("%s: not in the schema", join(place, key))
			}
		}
		if err := p.check(root, join(place, key), value); err != nil {
			return err
		}
	}
	return nil
}

// allows reports whether a kind of value fits; every integer is a number too.
func (s *Schema) allows(kind string) bool {
	match := func(want string) bool { return want == kind || want == "number" && kind == "integer" }
	switch t := s.Type.(type) {
	case string:
		return match(t)
	case []string:
		return slices.ContainsFunc(t, match)
	}
	return true
}

// kindOf names the JSON Schema type of a decoded value. An integer of any size is one: counters
// pass int64.
func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		if !strings.ContainsAny(v.String(), ".eE") {
			return "integer" // beyond int64, as a counter may be
		}
		return "number"
	}
	return "object"
}

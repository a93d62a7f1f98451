package reporttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/linerate/linerate/internal/report"
)

// Validate checks one JSON document against the schema that it names, with a validator that others
// wrote: every promised key is present, no other key is, types, formats and closed sets of values
// hold. It also refuses a key given twice, which JSON Schema cannot express. Further documents are
// those of wings above package report. The error names the place of the fault.
func Validate(doc []byte, further ...report.Described) error {
	if err := unique(doc); err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return errors.New("read document: not a JSON object")
	}
	name, _ := object["schema"].(string)
	schema, err := compiled(name, further)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	return nil
}

// schemas are the compiled schemas by name, because compiling one takes longer than a check.
var schemas sync.Map

// compiled returns the schema of a document by name.
func compiled(name string, further []report.Described) (*jsonschema.Schema, error) {
	if s, ok := schemas.Load(name); ok {
		return s.(*jsonschema.Schema), nil
	}
	files, err := report.SchemaFiles(further...)
	if err != nil {
		return nil, err
	}
	file := report.SchemaFile(name)
	text, ok := files[file]
	if !ok {
		return nil, fmt.Errorf("no schema %q", name)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(file, value); err != nil {
		return nil, fmt.Errorf("read schema %s: %w", name, err)
	}
	s, err := c.Compile(file)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	schemas.Store(name, s)
	return s, nil
}

// unique refuses an object with a key given twice, which decoders accept silently, and anything
// after the first value.
func unique(doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := uniqueValue(d, ""); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// uniqueValue reads one value token by token, because only tokens show a duplicate key.
func uniqueValue(d *json.Decoder, place string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	var keys []string
	for d.More() {
		at := place + "[]"
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			at = fmt.Sprintf("%s.%s", place, key)
			if slices.Contains(keys, at) {
				return fmt.Errorf("%s: key given twice", at[1:])
			}
			keys = append(keys, at)
		}
		if err := uniqueValue(d, at); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

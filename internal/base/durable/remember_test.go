package durable

import (
	"errors"
	"testing"
)

func TestRemember(t *testing.T) {
	type state struct{ N int }
	const name = "/var/lib/x/state.json"
	disk := NewMem()
	var got state
	if there, err := Recall(disk, name, 1, &got); there || err != nil {
		t.Fatalf("before the first write: %v, %v", there, err)
	}
	if err := Remember(disk, name, 1, state{7}); err != nil {
		t.Fatal(err)
	}
	if there, err := Recall(disk, name, 1, &got); !there || err != nil || got.N != 7 {
		t.Errorf("got %+v, %v, %v", got, there, err)
	}
	if there, err := Recall(disk, name, 2, &got); there || !errors.Is(err, ErrForgotten) {
		t.Errorf("another version: %v, %v", there, err)
	}
	for _, text := range []string{"", "null", "[]", "{}", `{"version":1}`, `{"version":1,"value":[]}`,
		`{"version":1,"value":{"N":"x"}}`} {
		if err := Replace(disk, name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if there, err := Recall(disk, name, 1, &got); there || !errors.Is(err, ErrForgotten) {
			t.Errorf("%q: %v, %v", text, there, err)
		}
	}
	if err := Remember(disk, name, 1, func() {}); err == nil {
		t.Error("a value that JSON cannot encode: no error")
	}
}

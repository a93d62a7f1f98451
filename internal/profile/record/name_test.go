package record

import (
	"errors"
	"testing"
)

// TestWithoutID checks that a process outside a container is not taken for the idle task.
func TestWithoutID(t *testing.T) {
	for _, c := range []struct {
		link string
		err  error
		want string
	}{
		{"pid:[4026531836]", nil, "idle"},
		{"pid:[4026532571]", nil, "idle or outside this container"},
		{"", errors.New("no /proc"), "idle"},
	} {
		if got := withoutID(func(string) (string, error) { return c.link, c.err }); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.link, c.err, got, c.want)
		}
	}
}

package live_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/change/knob"
)

// olderThan reports whether the kernel that runs is older than a release like "6.8".
func olderThan(t *testing.T, release string) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var here, there [2]int
	for _, r := range []struct {
		text string
		to   *[2]int
	}{{unix.ByteSliceToString(u.Release[:]), &here}, {release, &there}} {
		if _, err := fmt.Sscanf(r.text, "%d.%d", &r.to[0], &r.to[1]); err != nil {
			t.Fatalf("release %q: %v", r.text, err)
		}
	}
	return here[0] < there[0] || here[0] == there[0] && here[1] < there[1]
}

// known reports whether the kernel that runs has a knob at all, by what the catalogue says of its
// age.
func known(t *testing.T, id knob.ID) bool {
	t.Helper()
	d, ok := knob.Catalogue().Lookup(id)
	return !ok || d.Since == "" || !olderThan(t, d.Since)
}

package peer

import "testing"

// TestHostsOfOneName adds the target to the name of a far host that is called like this one.
func TestHostsOfOneName(t *testing.T) {
	for _, tc := range []struct{ far, near, want string }{
		{"db2", "db1", "db2"}, {"vm", "vm", "vm (192.0.2.7:7070)"}, {"", "", ""}, {"vm", "", "vm"},
	} {
		if got := apart(tc.far, tc.near, "192.0.2.7:7070"); got != tc.want {
			t.Errorf("far %q, near %q: %q, want %q", tc.far, tc.near, got, tc.want)
		}
	}
}

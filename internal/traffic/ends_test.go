package traffic

import "testing"

// TestEndsOfOneName names two hosts of one name by their addresses, and leaves all others alone.
func TestEndsOfOneName(t *testing.T) {
	for _, tc := range []struct{ near, far, local, remote, wantNear, wantFar string }{
		{"db1", "db2", "192.0.2.1", "192.0.2.2", "db1", "db2"},
		{"vm", "vm", "192.0.2.1", "192.0.2.2", "vm (192.0.2.1)", "vm (192.0.2.2)"},
		{"vm", "vm", "", "192.0.2.2", "vm", "vm (192.0.2.2)"},
		{"vm", "vm", "127.0.0.1", "127.0.0.1", "vm", "vm"}, // one host
		{"", "", "192.0.2.1", "192.0.2.2", "", ""},
	} {
		e := Ends{Local: End{Host: tc.near}, Remote: End{Host: tc.far}}
		if e.distinguish(tc.local, tc.remote); e.Local.Host != tc.wantNear || e.Remote.Host != tc.wantFar {
			t.Errorf("%+v: %q and %q", tc, e.Local.Host, e.Remote.Host)
		}
	}
}

package moderation

import "testing"

// TestControllerOf: the controllers of the field notes, and each of the table in one place only.
func TestControllerOf(t *testing.T) {
	for id, want := range map[string]string{
		"8086:1075": "82547", "8086:1019": "82547", "8086:1076": "82541", "8086:100e": "82540", "8086:100F": "82545",
		"8086:1000": "82542",
		"8086:10d3": "", "1af4:1000": "", "8086:": "", "": "",
	} {
		if got := ControllerOf(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	seen := make(map[string]string)
	for name, devices := range controllers {
		if (Card{Driver: E1000, Controller: name}).before("82542") {
			t.Errorf("%s is older than the first", name)
		}
		for _, d := range devices {
			if seen[d] != "" || len(d) != 4 {
				t.Errorf("%s is of %s and %s", d, seen[d], name)
			}
			seen[d] = name
		}
	}
}

// FuzzUsecs: a driver that accepts a number of microseconds also reads it back as microseconds, and
// every controller that is returned exists.
func FuzzUsecs(f *testing.F) {
	f.Add("e1000", uint32(125), "8086:100e")
	f.Add("igb", uint32(4), "8086:")
	f.Fuzz(func(t *testing.T, driver string, usecs uint32, id string) {
		throttle, err := FromUsecs(Driver(driver), usecs)
		if least, most := throttle.Bounds(); err == nil && !(least > 0 && least <= most) {
			t.Errorf("%s %d: %v to %v", driver, usecs, least, most)
		}
		if back, err2 := ReadBack(Driver(driver), usecs); (err == nil) != (err2 == nil) || err == nil &&
			usecs != 0 && back == 0 {
			t.Errorf("%s %d: %v, read back %d %v", driver, usecs, err, back, err2)
		}
		if name := ControllerOf(id); name != "" && controllers[name] == nil {
			t.Errorf("%q is %q", id, name)
		}
	})
}

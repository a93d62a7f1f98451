package owner_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/linerate/linerate/internal/host/owner"
)

// TestManagersBehindHiddenProc: where /proc shows only the own process, or nothing, a manager that
// systemd runs is found by its control group, and the caller learns that there may be others.
func TestManagersBehindHiddenProc(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	self := fstest.MapFS{"proc/4711/comm": file("linerate\n")}
	for name, test := range map[string]struct {
		root   fstest.MapFS
		want   []string
		hidden bool
	}{
		"all in sight": {fstest.MapFS{"proc/1/comm": file("systemd\n"), "proc/700/comm": file("NetworkManager\n"),
			"sys/fs/cgroup/system.slice/wickedd.service/cgroup.procs": file("")}, []string{"NetworkManager"}, false},
		"hidepid, version 2": {fstest.MapFS{"proc/4711/comm": self["proc/4711/comm"],
			"sys/fs/cgroup/system.slice/NetworkManager.service/cgroup.procs": file("")}, []string{"NetworkManager"}, true},
		"no /proc, version 1": {fstest.MapFS{
			"sys/fs/cgroup/systemd/system.slice/systemd-networkd.service/cgroup.procs": file("")},
			[]string{"systemd-networkd"}, true},
		"no systemd": {self, nil, true},
	} {
		if got, hidden := owner.Managers(test.root, true); !slices.Equal(got, test.want) || hidden != test.hidden {
			t.Errorf("%s: %q, hidden %t", name, got, hidden)
		}
	}
	if got, hidden := owner.Managers(self, false); got != nil || hidden {
		t.Errorf("an image: %q, hidden %t", got, hidden)
	}
}

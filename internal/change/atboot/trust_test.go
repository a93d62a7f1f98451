package atboot_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/linerate/linerate/internal/change/atboot"
)

// TestForeignProgram installs a program, or a state directory, that another user can change: root
// would run it at every start.
func TestForeignProgram(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode, dirMode, stateMode fs.FileMode
		refused                  bool
	}{
		"safe":            {0o755, 0o755, 0o755, false},
		"program":         {0o777, 0o755, 0o755, true},
		"directory of it": {0o755, 0o777, 0o755, true},
		"state directory": {0o755, 0o755, 0o777, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for dir, mode := range map[string]fs.FileMode{"opt": tc.dirMode, "state": tc.stateMode, "etc": 0o755} {
				if err := errors.Join(os.Mkdir(filepath.Join(root, dir), 0o755),
					os.Chmod(filepath.Join(root, dir), mode)); err != nil {
					t.Fatal(err)
				}
			}
			program := filepath.Join(root, "opt/linerate")
			if err := errors.Join(os.WriteFile(program, nil, 0o755), os.Chmod(program, tc.mode)); err != nil {
				t.Fatal(err)
			}
			r, err := atboot.Install(atboot.Options{Root: root, Init: atboot.Systemd, Program: "/opt/linerate",
				State: "/state"})
			if (err != nil) != tc.refused || err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("installed %v, %v", r.Changed, err)
			}
			if _, err := os.Stat(filepath.Join(root, "etc/systemd/system/linerate-recover.service")); tc.refused &&
				!errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the unit was written: %v", err)
			}
		})
	}
}

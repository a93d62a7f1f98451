package sys

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Release returns the version of the running system: "10.0.20348". RtlGetVersion shows it whatever
// the manifest of the program.
func Release() (string, error) {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber), nil
}

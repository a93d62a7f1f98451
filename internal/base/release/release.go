package release

// Number is the version of this source tree.
const Number = "0.1.0"

// revision is set by the linker: -X github.com/linerate/linerate/internal/base/release.revision=…
var revision string

// Version returns the version with the revision of the build, such as 0.1.0+8bdaa3e; without a
// known revision, the version alone.
func Version() string {
	if revision == "" {
		return Number
	}
	return Number + "+" + revision
}

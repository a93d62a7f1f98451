package host

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// readSettings reads every known setting that exists here. The kernel prints the fields of one
// value with tabs; here they are separated by single blanks, so that equal settings are equal text.
// The result is sorted by name, whatever order the table is in, because documents are compared.
func readSettings(src *source, said *notes) []Setting {
	settings := make([]Setting, 0, len(sysctls))
	// One sentence for all of them: what a container lacks it lacks for one and the same reason.
	var missing []string
	for _, entry := range sysctls {
		name, optional := strings.CutSuffix(entry, "?")
		dotted := strings.ReplaceAll(name, "/", ".")
		b, err := src.Read("proc/sys/" + name)
		switch {
		case err == nil:
			settings = append(settings,
				Setting{Knob: "sysctl:" + dotted, Value: strings.Join(strings.Fields(string(b)), " ")})
		// A setting that is there and cannot be read is news, whether or not it had to be there:
		// EPERM in a sandbox, EIO from a broken module.
		case !errors.Is(err, fs.ErrNotExist):
			said.add("setting "+dotted, err)
		case !optional:
			missing = append(missing, dotted)
		}
	}
	// An archive may hold as little of /proc/sys as it likes without a word about each file.
	if len(missing) > 0 && src.Live() {
		said.say("settings: not there in this kernel or network namespace: " + strings.Join(missing, ", "))
	}
	slices.SortFunc(settings, func(a, b Setting) int { return strings.Compare(a.Knob, b.Knob) })
	return settings
}

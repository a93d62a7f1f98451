package host

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/linerate/linerate/internal/base/sorting"
)

// readSettings reads every known setting that exists here. The kernel separates the fields of one
// value with tabs; here single blanks separate them, so that equal settings are equal text. The
// result is sorted by name, because documents are compared.
func readSettings(src *source, said *notes) []Setting {
	settings := make([]Setting, 0, len(sysctls))
	// One sentence for all of them: a container lacks all of them for one reason.
	var missing []string
	for _, entry := range sysctls {
		name, optional := strings.CutSuffix(entry, "?")
		dotted := strings.ReplaceAll(name, "/", ".")
		b, err := src.Read("proc/sys/" + name)
		switch {
		case err == nil:
			settings = append(settings,
				Setting{Knob: "sysctl:" + dotted, Value: strings.Join(strings.Fields(string(b)), " ")})
		// A setting that exists but cannot be read is reported, even an optional one: EPERM in a
		// sandbox, EIO from a broken module.
		case !errors.Is(err, fs.ErrNotExist):
			said.add("setting "+dotted, err)
		case !optional:
			missing = append(missing, dotted)
		}
	}
	// An archive may lack any part of /proc/sys; its files are not reported one by one.
	switch {
	case len(missing) == 0 || !src.Live():
	case len(settings) == 0:
		said.say("settings: not there: /proc/sys shows none of them")
	default:
		said.say("settings missing in this kernel or network namespace: " + strings.Join(missing, ", "))
	}
	sorting.Func(settings, func(a, b Setting) int { return strings.Compare(a.Knob, b.Knob) })
	return settings
}

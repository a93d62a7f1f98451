package host

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// errNotTold marks what an archive does not hold: nobody was asked, so there is nothing to complain
// about.
var errNotTold = errors.New("not in the archive")

// notes are the sentences about what could not be read. They are for people and stay whole, with
// path and the kernel's own words; causes keeps the errors for the one case where nothing at all
// could be read and the caller needs to tell why.
type notes struct {
	sentences []string
	causes    []error
}

// add says that something is not known and why, each sentence once. Missing, not permitted and not
// supported are different answers.
func (n *notes) add(what string, err error) {
	if err == nil || errors.Is(err, errNotTold) {
		return
	}
	// The order matters where an error is several things at once: what a user can do something
	// about comes first.
	class := "not readable"
	switch {
	case errors.Is(err, fs.ErrPermission):
		class = "not permitted"
	case errors.Is(err, nl.ErrNotSupported), errors.Is(err, errors.ErrUnsupported):
		class = "not supported"
	case errors.Is(err, fs.ErrNotExist):
		class = "not there"
	}
	n.say(what + ": " + class + ": " + err.Error())
	n.causes = append(n.causes, err)
}

// say adds a sentence once: a host with forty interfaces of one driver would say the same thing
// forty times.
func (n *notes) say(sentence string) {
	if !slices.Contains(n.sentences, sentence) {
		n.sentences = append(n.sentences, sentence)
	}
}

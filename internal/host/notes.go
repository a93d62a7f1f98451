package host

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/linerate/linerate/internal/nl"
)

// errNotTold marks what an archive does not hold: nobody was asked, so there is nothing to complain about.
var errNotTold = errors.New("not in the archive")

// notes are the sentences about what could not be read.
type notes struct {
	sentences []string
	causes    []error
}

// add says that something is not known and why, each sentence once. Missing, not permitted and not supported are different answers.
func (n *notes) add(what string, err error) {
	if err == nil || errors.Is(err, errNotTold) {
		return
	}
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

func (n *notes) say(sentence string) {
	if !slices.Contains(n.sentences, sentence) {
		n.sentences = append(n.sentences, sentence)
	}
}

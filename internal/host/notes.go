package host

import (
	"errors"
	"io/fs"

	"github.com/linerate/linerate/internal/kernel/nl"
)

// errNotArchived marks what an archive does not hold. The host was not asked, so it is no error to
// report.
var errNotArchived = errors.New("not in the archive")

// notes are the sentences about what could not be read, for users, with the path and the kernel's
// error text. causes keeps the errors for the case that nothing could be read and the caller must
// report why.
type notes struct {
	sentences []string
	causes    []error
	said      map[string]bool
}

// mostNotes bounds the sentences about one host: an archive may lack something of every interface
// that it claims.
const mostNotes = 500

// add records that something is not known and why, each sentence once. Missing, not permitted and
// not supported are different answers.
func (n *notes) add(what string, err error) {
	if err == nil || errors.Is(err, errNotArchived) {
		return
	}
	// The order matters if an error is several things at once: the reasons that a user can remove
	// come first.
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

// say adds a sentence once: a host with forty interfaces of one driver would repeat the same
// sentence forty times.
func (n *notes) say(sentence string) {
	switch {
	case n.said[sentence] || len(n.sentences) > mostNotes:
		return
	case len(n.sentences) == mostNotes:
		sentence = "more could not be read than is listed here"
	}
	if n.said == nil {
		n.said = make(map[string]bool)
	}
	n.said[sentence] = true
	n.sentences = append(n.sentences, sentence)
}

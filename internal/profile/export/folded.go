package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/linerate/linerate/internal/profile"
)

// plainName replaces what separates frames and counts in folded stacks.
var plainName = strings.NewReplacer(";", ":", " ", "_", "\n", "_", "\t", "_")

// Folded writes one line for each stack: the context, the functions from the root, and the number
// of samples.
func Folded(w io.Writer, p *profile.Profile) error {
	b := bufio.NewWriter(w)
	for _, s := range p.Stacks {
		b.WriteString(plainName.Replace(s.Context))
		for _, f := range slices.Backward(s.Functions) {
			b.WriteByte(';')
			b.WriteString(plainName.Replace(p.Functions[f].Name))
		}
		fmt.Fprintf(b, " %d\n", s.Samples)
	}
	return flushed(b, "folded stacks")
}

func flushed(b *bufio.Writer, what string) error {
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

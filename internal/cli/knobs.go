package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// A pattern without a match is an error with a status of its own and never an empty document.
//
// The host is read only on request. The catalogue is a book of reference, the same on every host
// and every system; and one knob of a catalogue may be hundreds of a host with many queues.
func (a *app) knobsCommand() *cobra.Command {
	var current bool
	c := &cobra.Command{
		Use:   "knobs [PATTERN]",
		Short: "The catalogue of knobs: range, default, symptom, risk, source",
		Long: `List the knobs that linerate knows, with what they do, the range, the default, when to touch
them, what may go wrong, and where that is known from. PATTERN is a part of the name or a glob;
it may name an interface, as in 'ethtool:eth0/*'.

With --current also the values of this host, for each interface, queue, route and interrupt,
and the line of sysctl.d, of TuneD's active profile or of modprobe.d that sets them when the
host starts. What cannot be read says why. Numbers are in the unit that the entry names: bytes,
microseconds, packets.`,
		Example: "  linerate knobs rmem\n  linerate knobs 'ethtool:*'\n  linerate knobs --current 'ethtool:eth0/*'\n" +
			"  linerate knobs --current sysctl:net.ipv4.tcp_rmem",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			found, of := knob.Catalogue().Match(pattern), ""
			if len(found) == 0 {
				found, of = knob.Catalogue().OnInterface(pattern), pattern
			}
			if len(found) == 0 {
				return noKnob(pattern)
			}
			var now map[knob.ID][]report.KnobNow
			if current {
				var err error
				if now, err = currentKnobs(cmd.Context(), found, asked(pattern), of); err != nil {
					return err
				}
			}
			doc := report.NewKnobs(a.envelope(""), found, now)
			return a.print(doc, func(s text.Style) error { return text.Knobs(a.out, doc, s) })
		},
	}
	c.Flags().BoolVar(&current, "current", false, "read the values of this host, and who sets them")
	return c
}

// noKnob names what was probably meant.
func noKnob(pattern string) error {
	hint := nearest(pattern)
	// The name of an interface alone is what people type who want to see all of it.
	if _, err := net.InterfaceByName(pattern); err == nil {
		hint = fmt.Sprintf("linerate knobs --current 'ethtool:%[1]s/*', or 'link:%[1]s/*', or 'queue:%[1]s/*'", pattern)
	}
	return statusError{status: exitUsage, message: fmt.Sprintf("no knob matches %q", pattern), hint: hint}
}

// nearest names the knobs that a name which is none may have meant, and else where all are.
func nearest(name string) string {
	const suggestions = 3
	near := knob.Catalogue().Nearest(name, suggestions)
	if len(near) == 0 {
		return "linerate knobs, for the whole list"
	}
	names := make([]string, len(near))
	for i, id := range near {
		names[i] = string(id)
	}
	return "did you mean " + strings.Join(names, " or ") + "?"
}

// asked is the one knob that a full name means, empty for a pattern: who asks for link:eth0/mtu
// does not want to see the others.
func asked(pattern string) knob.ID {
	if id, err := knob.ParseID(strings.TrimSpace(pattern)); err == nil && !strings.ContainsAny(pattern, "*?[") {
		return id
	}
	return ""
}

// currentKnobs reads what this host has of some definitions.
//
// A queue that is allocated and not in use, an interface that goes away in between: what a list
// names and a read does not find is left out. A knob that has no star in its name was asked for and
// says that it is not there. Of is a glob that the names have to fit, empty for all of them.
func currentKnobs(ctx context.Context, definitions []knob.Definition, only knob.ID,
	of string) (map[knob.ID][]report.KnobNow, error) {
	system, boot := live.New(), bootconf.Read(os.DirFS("/"))
	now := make(map[knob.ID][]report.KnobNow)
	for _, d := range definitions {
		ids, err := []knob.ID{only}, error(nil)
		if only == "" {
			ids, err = system.Instances(ctx, d)
		}
		if err != nil {
			ids = nil
			now[d.Pattern] = []report.KnobNow{{Knob: d.Pattern, Unread: why(err)}}
		}
		for _, id := range ids {
			if of != "" && !knob.Overlap(of, string(id)) {
				continue
			}
			v, err := system.Read(ctx, id)
			if errors.Is(err, fs.ErrNotExist) && id != d.Pattern && id != only {
				continue
			}
			k := report.KnobNow{Knob: id, Value: &v}
			if err != nil {
				k.Value, k.Unread = nil, why(err)
			}
			if line, ok := boot.Line(id); ok {
				k.SetBy = &line
			}
			now[d.Pattern] = append(now[d.Pattern], k)
		}
		// Interrupted: a document with half of the values would look like a whole one.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// why gives the cause without operation and name, which stand beside it.
func why(err error) string {
	var e *knob.Error
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

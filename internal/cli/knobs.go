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

	"github.com/linerate/linerate/internal/base/spelling"
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// knobsCommand shows the catalogue. A pattern without a match is an error and never an empty
// document.
//
// The host is read only on request. The catalogue is a reference, the same on every host and every
// system, and one knob of it may be hundreds on a host with many queues.
func (a *app) knobsCommand() *cobra.Command {
	var current bool
	c := &cobra.Command{
		Use:         "knobs [PATTERN]",
		Annotations: exits(exitInterrupted),
		Short:       "The catalogue of knobs: range, default, symptom, risk, source",
		Long: `List the knobs that linerate knows: what they do, their range, their default, when to change
them, what may go wrong, and the source of that. PATTERN is a part of the name or a glob; it may
name an interface, as in 'ethtool:eth0/*'.

--current adds the values of this host, for each interface, queue, route and interrupt, as
KNOB=VALUE, which linerate set takes. A comment names the line of sysctl.d, of TuneD's active
profile or of modprobe.d that sets a value at a start. What is read-only here, as in a container,
is a comment with the reason. For a knob that cannot be read, --current NAME shows it. Numbers are
in the unit that the entry names: bytes, microseconds, packets.`,
		Example: "  linerate knobs rmem\n  linerate knobs 'ethtool:*'\n  linerate knobs --current 'ethtool:eth0/*'\n" +
			"  linerate knobs --current sysctl:net.ipv4.tcp_rmem",
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			found, of := knob.Catalogue().Match(pattern), ""
			if pattern == "" {
				found = knob.Catalogue().Own()
			}
			if len(found) == 0 {
				found, of = knob.Catalogue().OnInterface(pattern), pattern
			}
			if len(found) == 0 {
				return noKnob(pattern)
			}
			var now map[knob.ID][]report.KnobNow
			if current {
				err := noInterface("knobs --current "+pattern, knob.ID(of).Interface())
				if err != nil {
					return err
				}
				if now, err = currentKnobs(cmd.Context(), found, asked(pattern), of); err != nil {
					return err
				}
			}
			doc := report.NewKnobs(a.envelope(""), found, now)
			return a.print(doc, func(s text.Style) error { return text.Knobs(a.out, doc, s) })
		},
	}
	c.Flags().BoolVar(&current, "current", false, "also show the values of this host, and what sets them")
	return c
}

// noKnob is the error for a pattern without a match, with suggestions.
func noKnob(pattern string) error {
	hint := nearest(pattern)
	// Users type the name of an interface to see all its knobs.
	if _, err := net.InterfaceByName(pattern); err == nil {
		hint = fmt.Sprintf("linerate knobs --current 'ethtool:%[1]s/*', or 'link:%[1]s/*', or 'queue:%[1]s/*'", pattern)
	}
	return statusError{status: exitUsage, message: fmt.Sprintf("no knob matches %q", pattern), hint: hint}
}

// nearest suggests knobs with a similar name, or the whole list.
func nearest(name string) string {
	const suggestions = 3
	near := knob.Catalogue().Nearest(name, suggestions)
	if len(near) == 0 {
		return "linerate knobs prints the whole list"
	}
	names := make([]string, len(near))
	for i, id := range near {
		names[i] = string(id)
	}
	return spelling.Meant("", names)
}

// asked returns the one knob that a full name stands for; empty for a pattern.
func asked(pattern string) knob.ID {
	if id, err := knob.ParseID(strings.TrimSpace(pattern)); err == nil && !strings.ContainsAny(pattern, "*?[") {
		return id
	}
	return ""
}

// currentKnobs reads the values of this host for some definitions. Of is a glob that the names have
// to match, empty for all.
//
// It leaves out what the host lists and cannot read: a queue that is allocated and not in use, an
// interface that has just gone. A knob without a star in its name was asked for, and says that the
// host does not have it.
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
			} else if err := system.CheckWrite(ctx, id, v); errors.Is(err, knob.ErrReadOnly) ||
				errors.Is(err, knob.ErrGlobal) {
				k.ReadOnly = why(err)
			}
			if line, ok := boot.Line(id); ok {
				k.SetBy = &line
			}
			now[d.Pattern] = append(now[d.Pattern], k)
		}
		// After an interrupt, a document with half of the values would look complete.
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// why returns the cause of an error without operation and name, which the document has already.
func why(err error) string {
	var e *knob.Error
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

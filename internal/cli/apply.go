package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/bootconf"
	"github.com/linerate/linerate/internal/change/hazard"
	"github.com/linerate/linerate/internal/change/knob"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/change/plan"
	"github.com/linerate/linerate/internal/experiment/goal"
	"github.com/linerate/linerate/internal/experiment/loop"
	"github.com/linerate/linerate/internal/host"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// applyCommand tries a profile. It is a tune whose candidates are those of the profile: no value is
// set because a profile has it.
func (a *app) applyCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:         "apply PROFILE [TARGET]",
		Annotations: exits(exitPartial, exitRolledBack, exitNotPermitted, exitLocked, exitUnreachable, exitInterrupted),
		Short:       "Try a ready profile towards another host; keep only what is proven",
		Long: `Try the settings of a profile one at a time on the path to TARGET, as linerate tune does, and keep
those that are proven to help there. No value is set only because the profile has it.

PROFILE is one of:
  a role    bulk (few long transfers), web or cache (many connections), router, firewall,
            latency, virtual (a virtual machine), nameserver or nfs. The values follow from this
            host and the path, as with linerate plan.
  a name    of a TuneD profile of this host, such as network-latency or virtual-guest
  a path    of a TuneD profile, a file of sysctl.d, what linerate persist or linerate export has
            written, or any other file that check-advice reads; - is standard input

The profiles that a TuneD profile includes come before its own settings. Each setting is judged as
check-advice does: one that this kernel ignores or no longer has, or that is harmful, is left out
with the reason. Scripts, variables and other parts of the system are not tried.

--dry-run changes nothing. Without TARGET it lists the settings for this host alone, and with
TARGET it diagnoses the path and prints the plan. The goal is that of the role; latency for a
profile with this word in its name; otherwise throughput. linerate undo takes everything back.`,
		Example: "  linerate apply network-throughput 192.0.2.7 --key-file FILE\n" +
			"  linerate apply latency ssh://root@db2\n" +
			"  linerate apply /etc/sysctl.d/90-network.conf --dry-run\n" +
			"  linerate apply ./virtual-guest/tuned.conf 192.0.2.7 --dry-run",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && !f.dryRun {
				return usageError{flagError{errors.New("apply: TARGET is missing: a profile is tried on the path to another host"),
					"linerate apply " + args[0] + " TARGET, or --dry-run for its settings alone"}}
			}
			return a.apply(cmd, args, f)
		},
	}
	f.add(c, "what to improve: throughput, latency or packets (default: from the profile)")
	c.Flags().Lookup("objective").Usage = "goal with bounds, as in linerate tune"
	return a.forScripts(a.streaming(c), false)
}

// applied is a profile of files: its settings in the order in which they apply.
type applied struct {
	files, missing []string
	settings       []judged
	unread         int // lines that were not understood
}

// judged is a setting of a profile with what is known about it.
type judged struct {
	advice.Judgement
	asked loop.Asked
}

func (a *app) apply(cmd *cobra.Command, args []string, f tuneFlags) error {
	name := args[0]
	role, notRole := plan.ParseRole(name)
	var profile applied
	if notRole == nil {
		f.role = string(role)
	} else {
		if name == "-" && f.target.key.key == "-" {
			return usagef("apply - and --key - both read standard input: give the key by --key-file or LINERATE_KEY")
		}
		var err error
		if profile, err = a.profileOf(name); err != nil {
			return err
		}
		f.asked = []loop.Asked{} // not nil: a profile without settings asks for nothing
		for _, s := range profile.settings {
			f.asked = append(f.asked, s.asked)
		}
		if f.goal == "" && f.objective == "" && strings.Contains(name, "latency") {
			f.goal = string(goal.Latency)
		}
	}
	if len(args) == 2 {
		if strings.HasPrefix(args[1], diskScheme) {
			return usagef("apply: %s: a profile is for a host; linerate tune %s tunes a disk", args[1], args[1])
		}
		return a.tune(cmd, args[1], f)
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	doc, err := a.applyPlan(cmd.Context(), name, role, profile, o)
	if err != nil {
		return err
	}
	return a.print(doc, func(s text.Style) error { return text.Apply(a.out, doc, s) })
}

// profileOf reads a profile that is no role.
func (a *app) profileOf(name string) (applied, error) {
	var p applied
	target, _, err := adviceTarget("", "")
	if err != nil {
		return p, err
	}
	if p.files, p.missing, err = filesOfProfile(name); err != nil {
		return p, err
	}
	for _, file := range p.files {
		data, err := a.readText(file)
		if err != nil {
			return p, fmt.Errorf("apply: read profile: %w", err)
		}
		text, err := advice.Parse(data)
		if err != nil {
			return p, fmt.Errorf("apply: read profile %s: %w", file, err)
		}
		source := filepath.Base(file)
		switch {
		case file == "-":
			source = "standard input"
		case source == tunedConf: // each profile has a file of this name
			source = filepath.Base(filepath.Dir(file))
		}
		for _, j := range target.Judge(text) {
			if j.Knob == "" {
				p.unread++
				continue
			}
			s := judged{j, askedOf(j, source)}
			if _, known := knob.Catalogue().Lookup(s.asked.Knob); !known && s.asked.Refused == "" {
				s.asked.Refused = "not in the catalogue; " + strings.ToLower(j.Why[:1]) + strings.TrimSuffix(j.Why[1:], ".")
			}
			p.settings = append(p.settings, s)
		}
	}
	if len(p.settings) == 0 {
		return p, flagError{fmt.Errorf("apply %s: no line of it is a setting that linerate reads", name),
			"linerate check-advice FILE lists the lines of a file"}
	}
	return p, nil
}

// tunedConf is the file of a TuneD profile in its directory.
const tunedConf = "tuned.conf"

// filesOfProfile returns the files of a profile that is no role, and the profiles that it includes
// and that are not there.
func filesOfProfile(name string) (files, missing []string, err error) {
	if name == "-" {
		return []string{name}, nil, nil
	}
	root, file := os.DirFS("/"), name
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		file = filepath.Join(name, tunedConf)
	case errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(name, filepath.Separator):
		// No file: the name of a profile of the host.
		found, missing := bootconf.ProfileFiles(root, name)
		for i := range found {
			found[i] = "/" + found[i]
		}
		if len(found) == 0 {
			var roles []string
			for _, r := range plan.Roles() {
				roles = append(roles, string(r))
			}
			of := strings.Join(roles, ", ")
			if has := bootconf.Profiles(root); len(has) > 0 {
				of += "; TuneD profiles of this host: " + strings.Join(has, ", ")
			}
			err := fmt.Errorf("apply %s: no role, no file and no TuneD profile of this host", name)
			return nil, nil, usageError{flagError{err, "roles: " + of}}
		}
		return found, missing, nil
	case err != nil:
		return nil, nil, fmt.Errorf("apply: read profile: %w", err)
	}
	if filepath.Base(file) != tunedConf {
		return []string{file}, nil, nil
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return nil, nil, fmt.Errorf("apply: read profile: %w", err)
	}
	found, missing := bootconf.ProfileFiles(root, strings.TrimPrefix(filepath.ToSlash(whole), "/"))
	for i := range found {
		found[i] = "/" + found[i]
	}
	if len(found) == 0 {
		found = []string{file} // not there: reading it says so
	}
	return found, missing, nil
}

// applyPlan returns what a run would try on this host.
func (a *app) applyPlan(ctx context.Context, name string, role plan.Role, p applied, o loop.TuneOptions) (
	*report.ApplyDocument, error) {
	h, err := host.Root{}.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	given, err := plan.OfHost(h, "")
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	var card *host.Interface
	for i := range h.Interfaces {
		if h.Interfaces[i].Name == given.Interface {
			card = &h.Interfaces[i]
		}
	}
	if role != "" {
		if p, err = appliedRole(given, role); err != nil {
			return nil, err
		}
	}
	asked := make([]loop.Asked, len(p.settings))
	of := map[string]judged{} // by the origin of the setting, which its candidate keeps
	for i, s := range p.settings {
		asked[i] = s.asked
		asked[i].Why = fmt.Sprint(i)
		of[asked[i].Why] = s
	}
	made := loop.PlanNear(ctx, loop.Near{Backend: hazard.Backend{Backend: live.New()}}, h, card, asked, o.Allow)
	doc := &report.ApplyDocument{Envelope: a.envelope(h.Name).Of(report.SchemaApply), Profile: name,
		Goal: string(o.Objective.Goal), Files: p.files, Missing: p.missing, Candidates: made.Open(),
		Settings: []report.ApplySetting{}, NotUnderstood: p.unread}
	for _, c := range made.Candidates {
		s := of[c.Why]
		doc.Settings = append(doc.Settings, report.ApplySetting{Knob: c.Knob, Value: c.Levels[0], From: c.From,
			Disturbance: c.Disturbance, Verdict: s.Verdict, Why: s.Judgement.Why, Where: s.asked.Why, LeftOut: c.Refused})
	}
	return doc, nil
}

// appliedRole returns the settings of a role, as far as they follow from this host alone.
func appliedRole(given plan.Given, role plan.Role) (applied, error) {
	given.Role = string(role)
	situation, err := given.Resolve()
	var made *plan.Plan
	if err == nil {
		made, err = plan.Make(situation)
	}
	if err != nil {
		return applied{}, usageError{flagError{fmt.Errorf("apply %s --dry-run: %w", role, err),
			fmt.Sprintf("give TARGET, whose path is measured; or linerate plan --role %s --link 10G --rtt 20ms", role)}}
	}
	var p applied
	for i := range made.Lines {
		l := &made.Lines[i]
		if l.WriteUp {
			continue
		}
		s := judged{asked: loop.Asked{Knob: knob.ID(l.Knob), Value: knob.Value(l.Value)}}
		s.Verdict, s.Why = l.Verdict, l.Reason
		if !l.Set {
			s.asked.Refused = l.Reason
		}
		p.settings = append(p.settings, s)
	}
	return p, nil
}

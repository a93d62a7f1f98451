package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// failingVerdicts are the arguments of --fail-on; a check does not fail for advice that is right.
var failingVerdicts = []advice.Verdict{advice.NowDefault, advice.Ignored, advice.Removed, advice.Harmful}

// notUnderstood is the argument of --fail-on for lines that were not read. It is no verdict, so
// that it comes beside one: --fail-on harmful,not-understood.
const notUnderstood = "not-understood"

// checkAdviceCommand judges old advice. A line that it does not understand is a line of the
// document and no error; a file that cannot be read, or is no text, is one.
func (a *app) checkAdviceCommand() *cobra.Command {
	var (
		system  string
		release string
		failOn  []string
		current bool
	)
	c := &cobra.Command{
		Use:         "check-advice FILE",
		Annotations: exits(exitFinding, exitNotPermitted, exitInterrupted),
		Short:       "Check which old tuning advice is still right",
		Long: `Read tuning advice and show for each setting whether it is still right, the default by now,
ignored, removed or harmful; why, since when, and what has its effect today. FILE is a
sysctl.conf, lines of modprobe.d, a TuneD profile, FreeBSD's loader.conf or rc.conf, or a .reg
file. A script, a recipe (YAML, Puppet, Chef, Nix) or a page with tables and commands is read as
well, and so is any mixture. The commands are sysctl, ethtool, ip, ifconfig, route, tc, ndd,
ipadm, dladm, netsh and those of PowerShell. FILE has at most 1 MiB; "-" is standard input.
check-advice runs nothing of it. Lines that look like a setting and are in no form that it reads
are counted and listed.

Each setting is judged for the system it belongs to: that of this host for its release, other
systems for their newest. --os and --release select another one.`,
		Example: "  linerate check-advice /etc/sysctl.conf\n" +
			"  linerate check-advice --os windows tweaks.reg\n" +
			"  linerate check-advice --fail-on ignored - < tuning.sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, releases, err := adviceTarget(advice.OS(strings.ToLower(system)), release)
			if err != nil {
				return err
			}
			for _, f := range failOn {
				if f != notUnderstood && !slices.Contains(failingVerdicts, advice.Verdict(f)) {
					return usagef("--fail-on %q: not one of %s, %s", f, words(failingVerdicts), notUnderstood)
				}
			}
			data, err := a.readText(args[0])
			if err != nil {
				return fmt.Errorf("check-advice: %w", err)
			}
			file, err := advice.Parse(data)
			if err != nil {
				return fmt.Errorf("check-advice %s: %w", args[0], err)
			}
			if current {
				target.Present = advice.FromBackend(cmd.Context(), live.New())
			}
			judged := target.Judge(file)
			// A release that no line of the text is judged for belongs to another system, as
			// --release 7 with a .reg file does.
			if release != "" && system == "" && len(judged) > 0 &&
				!slices.ContainsFunc(judged, func(j advice.Judgement) bool { return j.For == advice.Linux }) {
				return usagef("--release %s: %s has no setting of Linux; --os selects the system (%s)", release,
					args[0], judged[0].For)
			}
			doc := report.NewCheckAdvice(a.envelope(""), args[0], file.Lines, target.OS, releases, judged)
			if err := a.print(doc, func(s text.Style) error { return text.Advice(a.out, doc, s) }); err != nil {
				return err
			}
			if fails(judged, failOn) {
				return statusError{status: exitFinding}
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&system, "os", "", "judge every setting for this system: "+words(advice.Systems()))
	flags.StringVar(&release, "release", "",
		"release to judge for: a Linux kernel (5.15), or one of the system that --os names (14.1, 11.4, xp, 2003, 10)")
	flags.StringSliceVar(&failOn, "fail-on", nil, "exit with 4 when a verdict is at or above this one ("+
		words(failingVerdicts)+"), or for a line that is "+notUnderstood+"; a list with commas asks for both")
	flags.BoolVar(&current, "current", false, "also show the present values of this host")
	return c
}

// fails reports whether one of the judgements is what --fail-on asks for.
func fails(judged []advice.Judgement, failOn []string) bool {
	return slices.ContainsFunc(judged, func(j advice.Judgement) bool {
		return slices.ContainsFunc(failOn, func(f string) bool {
			if f == notUnderstood {
				return j.Knob == ""
			}
			return j.Verdict.Rank() >= advice.Verdict(f).Rank()
		})
	})
}

// adviceTarget returns what to judge for, and the releases for the document. Advice for Linux is
// judged for this host's kernel unless another release is given; for other systems it is judged for
// the newest known release.
func adviceTarget(system advice.OS, release string) (advice.Target,
	map[string]string, error) {
	target := advice.Target{OS: system, Release: map[advice.OS]advice.Release{}}
	if system != "" && !slices.Contains(advice.Systems(), system) {
		return target, nil, usagef("--os %q: not one of %s", system, words(advice.Systems()))
	}
	own := ownSystem()
	of := system
	if of == "" {
		of = cmp.Or(own, advice.Linux)
	}
	if release == "" && of == own {
		// Without the release of this host the newest one is the best choice.
		release, _ = sys.Release()
	}
	if release == "" {
		return target, nil, nil
	}
	r, err := advice.ParseRelease(of, release)
	if err != nil {
		return target, nil, usagef("--release: %w", err)
	}
	target.Release[of] = r
	return target, map[string]string{string(of): release}, nil
}

// ownSystem returns the system of this host as package advice names it; empty: it knows nothing of
// it. The names are those of Go.
func ownSystem() advice.OS {
	if own := advice.OS(runtime.GOOS); slices.Contains(advice.Systems(), own) {
		return own
	}
	return ""
}

// readText reads a file, or standard input for "-", up to one byte more than a text may have.
func (a *app) readText(name string) ([]byte, error) { return a.readBounded(name, advice.MaxBytes) }

// readBounded reads a file, or standard input for "-", up to one byte more than it may have.
func (a *app) readBounded(name string, most int64) ([]byte, error) {
	in, err := a.openInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil && name == "-" {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return data, err
}

// words lists names for a sentence.
func words[T ~string](all []T) string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = string(x)
	}
	return strings.Join(names, ", ")
}

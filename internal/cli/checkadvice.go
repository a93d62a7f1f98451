package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/change/advice"
	"github.com/linerate/linerate/internal/change/knob/live"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
)

// failingVerdicts are those that --fail-on takes: a check that failed for good advice would be
// none.
var failingVerdicts = []advice.Verdict{advice.NowDefault, advice.Ignored, advice.Removed, advice.Harmful}

// A text is judged as far as it is understood: what is not is a line of the document, and no error.
// Only a file that cannot be read, or is no text, is one.
func (a *app) checkAdviceCommand() *cobra.Command {
	var (
		system  string
		release string
		failOn  string
		current bool
	)
	c := &cobra.Command{
		Use:   "check-advice FILE",
		Short: "Say which old tuning advice is still right",
		Long: `Read tuning advice and say for each setting whether it is still right, the default by now, ignored,
removed or harmful, why, since when, and what has its effect today. FILE is a sysctl.conf, lines of
modprobe.d, a script or a page with commands (sysctl, ethtool, ip, ifconfig, route, tc, ndd, ipadm,
dladm, netsh, PowerShell), FreeBSD's loader.conf or rc.conf, a .reg file, or any mixture, of at most
1 MiB; "-" is standard input. Nothing in it is run.

Each setting is judged for the system it belongs to: on Linux for this host's kernel, on others for
their newest release. --os and --release choose another one.`,
		Example: "  linerate check-advice /etc/sysctl.conf\n  linerate check-advice --os windows tweaks.reg\n  linerate check-advice --fail-on ignored - < tuning.sh",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, releases, err := a.adviceTarget(cmd.Context(), advice.OS(strings.ToLower(system)), release)
			if err != nil {
				return err
			}
			if failOn != "" && !slices.Contains(failingVerdicts, advice.Verdict(failOn)) {
				return usagef("--fail-on %q: not one of %s", failOn, words(failingVerdicts))
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
			// A release that no line of the text is judged for was meant for another system:
			// --release 7 of a .reg file.
			if release != "" && system == "" && len(judged) > 0 &&
				!slices.ContainsFunc(judged, func(j advice.Judgement) bool { return j.For == advice.Linux }) {
				return usagef("--release %s: %s has no setting of Linux; --os says whose release it is (%s)", release,
					args[0], judged[0].For)
			}
			doc := report.NewCheckAdvice(a.envelope(""), args[0], file.Lines, target.OS, releases, judged)
			if err := a.print(doc, func(s text.Style) error { return text.Advice(a.out, doc, s) }); err != nil {
				return err
			}
			for _, j := range judged {
				if failOn != "" && j.Verdict.Rank() >= advice.Verdict(failOn).Rank() {
					return statusError{status: exitFinding}
				}
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&system, "os", "", "judge every setting for this system: "+words(advice.Systems()))
	flags.StringVar(&release, "release", "",
		"release to judge for: a Linux kernel (5.15), or one of the system that --os names (14.1, 11.4, xp, 2003, 10)")
	flags.StringVar(&failOn, "fail-on", "", "exit with 4 when a verdict is at or above this one: "+
		words(failingVerdicts))
	flags.BoolVar(&current, "current", false, "show the present values of this host beside the advice")
	return c
}

// oneFile says what is missing in words of its own; "accepts 1 arg(s)" leaves open of what.
func oneFile(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("name a file, or - for standard input")
	case len(args) > 1:
		return fmt.Errorf("name one file, and not %d; cat FILE... | linerate check-advice - takes several", len(args))
	case args[0] == "":
		return errors.New("the name of the file is empty")
	}
	return nil
}

// adviceTarget finds what is judged for, and the releases for the document. Advice for Linux is for
// this host's kernel unless another one is given; on other systems it is for the newest that is
// known.
func (a *app) adviceTarget(ctx context.Context, system advice.OS, release string) (advice.Target,
	map[string]string, error) {
	target := advice.Target{OS: system, Release: map[advice.OS]advice.Release{}}
	if system != "" && !slices.Contains(advice.Systems(), system) {
		return target, nil, usagef("--os %q: not one of %s", system, words(advice.Systems()))
	}
	of := system
	if of == "" {
		of = advice.Linux
	}
	if release == "" && of == advice.Linux {
		// A host without such a file is no Linux host; the newest kernel is the best that can be
		// said there.
		here, err := live.New().Read(ctx, "sysctl:kernel.osrelease")
		if err != nil {
			return target, nil, nil
		}
		release = string(here)
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

// readText reads a file, or standard input for "-", as far as a text may be long and one byte more.
func (a *app) readText(name string) ([]byte, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, advice.MaxBytes+1))
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

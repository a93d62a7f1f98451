package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/hub/internal/switches/snmp"
	"github.com/linerate/linerate/internal/base/unit"
	"github.com/linerate/linerate/internal/base/visible"
	"github.com/linerate/linerate/internal/diagnose/evidence"
	"github.com/linerate/linerate/internal/report"
)

const switchExitHelp = `
EXIT STATUS
  0 ok · 1 failed · 2 usage · 10 the switch refuses the user or the key · 12 the switch does not answer
`

// longestPause is the longest time between the two readings.
const longestPause = 10 * time.Minute

func (a *app) switchCommand(f *runFlags) *cobra.Command {
	var (
		c        switches.Config
		pause    string
		timeout  string
		everyone bool
	)
	cmd := &cobra.Command{
		Use:   "switch NAME|ADDRESS",
		Short: "Read a switch by SNMP, and print its ports with rates, errors and findings",
		Long: `switch reads the ports of a switch twice and prints what they carried and lost in between.
It takes the name of a switch in the configuration, or an address. It only reads: nothing is set at the switch.

Without a user it speaks version 2c, with the community of the file, of the variable ` + switches.CommunityEnv + `, or
"public". With --user it speaks version 3. No secret is taken from the command line, where every user could see it.`,
		Example: "  linerate-hub switch 192.0.2.10\n  linerate-hub switch core-1 --duration 1m --json\n" +
			"  linerate-hub switch 192.0.2.10 --user linerate --auth-key-file auth.key --privacy-key-file privacy.key",
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) != 1 {
				return usageError{errors.New("switch: want one NAME or ADDRESS")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			wait, err := unit.ParseSpan(pause)
			if pause == "0" {
				wait, err = 0, nil
			}
			if err != nil || wait < 0 || wait.Duration() > longestPause {
				return usageError{fmt.Errorf("--duration %q: write 0 to %v, such as 10s", pause, unit.Span(longestPause))}
			}
			if timeout != "" {
				if c.Timeout, err = unit.ParseSpan(timeout); err != nil {
					return usageError{fmt.Errorf("--timeout %q is not a duration: write 2s", timeout)}
				}
			}
			one, host, err := a.switchNamed(f, words[0], c)
			if err != nil {
				return err
			}
			state, findings, err := switches.Look(cmd.Context(), one, a.env, host, wait.Duration())
			if err != nil {
				return err
			}
			doc := report.NewSwitch(report.NewEnvelope(version, host), state, findings)
			return a.print(doc, func(w io.Writer) { printSwitch(w, doc, everyone) })
		},
	}
	cmd.SetHelpTemplate(cmd.HelpTemplate() + switchExitHelp)
	flags := cmd.Flags()
	flags.StringVar(&pause, "duration", "10s", "time between the two readings; 0: read once")
	flags.StringVar(&timeout, "timeout", "", "how long to wait for an answer, three times (default 2s)")
	flags.StringSliceVar(&c.Ports, "port", nil,
		"pattern of names or aliases, such as 'Gi1/0/*'; may be repeated (default: Ethernet and aggregates)")
	flags.BoolVar(&everyone, "all", false, "print ports without a link as well")
	flags.StringVar(&c.CommunityFile, "community-file", "", "file with the community of version 2c")
	flags.StringVar(&c.User, "user", "", "user of version 3")
	flags.StringVar(&c.Auth, "auth", "", "authentication protocol: "+strings.Join(snmp.Auths(), ", ")+" (default sha256)")
	flags.StringVar(&c.AuthKeyFile, "auth-key-file", "", "file with the authentication key")
	flags.StringVar(&c.Privacy, "privacy", "", "privacy protocol: "+strings.Join(snmp.Privacies(), ", ")+" (default aes)")
	flags.StringVar(&c.PrivacyKeyFile, "privacy-key-file", "", "file with the privacy key")
	return cmd
}

// switchNamed returns the switch of a name in the configuration, or one at an address. Flags win.
func (a *app) switchNamed(f *runFlags, word string, flags switches.Config) (switches.Config, string, error) {
	file, _, err := configAt(f.config, a.env)
	if err != nil {
		return switches.Config{}, "", usageError{err}
	}
	host := file.Host
	if host == "" {
		host, _ = os.Hostname() // an unknown name is absent
	}
	flags.Name, flags.Address = word, word
	for _, c := range file.Switches {
		if c.Name != word {
			continue
		}
		if flags.User == "" && flags.CommunityFile == "" {
			c.Ports, c.Timeout = orPorts(flags.Ports, c.Ports), cmp.Or(flags.Timeout, c.Timeout)
			return c, host, nil
		}
		flags.Address, flags.Attached = c.Address, c.Attached
		flags.Ports, flags.Timeout = orPorts(flags.Ports, c.Ports), cmp.Or(flags.Timeout, c.Timeout)
	}
	check := flags
	check.Name = "" // an address may have letters that names have not
	if err := check.Validate(); err != nil {
		return flags, host, usageError{err}
	}
	return flags, host, nil
}

func orPorts(a, b []string) []string {
	if len(a) > 0 {
		return a
	}
	return b
}

// printSwitch prints a table of the ports, then the findings.
func printSwitch(w io.Writer, doc *report.SwitchDocument, all bool) {
	s := &doc.Switch
	fmt.Fprintf(w, "%s\n", strings.Join(nonEmpty(s.SystemName, s.Description), " · "))
	fmt.Fprintf(w, "%s, up %v, read in %s\n\n", s.Address, time.Duration(s.UptimeSeconds)*time.Second,
		unit.FormatSeconds(s.ReadSeconds))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PORT\tALIAS\tLINK\tIN\tOUT\tERRORS\tDISCARDS\tNEIGHBOUR")
	hidden := 0
	for i := range s.Ports {
		p := &s.Ports[i]
		if !p.Up && !all && len(s.Ports) > 1 {
			hidden++
			continue
		}
		in, out, bad, lost := "-", "-", "-", "-"
		if p.OverSeconds > 0 {
			in, out = rateOf(p.ReceiveRate, p.Speed), rateOf(p.TransmitRate, p.Speed)
			bad, lost = both(p.ReceiveErrors, p.TransmitErrors), both(p.ReceiveDiscards, p.TransmitDiscards)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.Alias, linkOf(p), in, out, bad, lost, farEnd(p))
	}
	_ = t.Flush() // the writer below keeps its error
	if hidden > 0 {
		fmt.Fprintf(w, "%d ports without a link are not shown; --all shows them\n", hidden)
	}
	for _, f := range doc.Findings {
		fmt.Fprintf(w, "\n%s: %s\n  %s · %.0f %% sure\n  %s\n", f.Severity, f.Title, f.Code, 100*f.Confidence, f.Remedy.Text)
	}
	if len(doc.Findings) == 0 && len(s.Ports) > 0 && s.Ports[0].OverSeconds > 0 {
		fmt.Fprintf(w, "\nno findings in %s\n", unit.FormatSeconds(s.Ports[0].OverSeconds))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "note: %s\n", warning)
	}
}

func nonEmpty(words ...string) []string {
	var out []string
	for _, w := range words {
		if w = visible.Line(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// rateOf returns a rate with its share of the speed, from one per cent.
func rateOf(bitsPerSecond, speed float64) string {
	text := unit.BitRate(bitsPerSecond).String()
	if speed > 0 && bitsPerSecond >= speed/100 {
		text += " (" + evidence.Percent(bitsPerSecond/speed) + ")"
	}
	return text
}

// both returns the counts of both directions; "-" for none.
func both(in, out float64) string {
	if in == 0 && out == 0 {
		return "-"
	}
	count := func(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }
	return count(in) + " in, " + count(out) + " out"
}

func linkOf(p *report.SwitchPort) string {
	if !p.Enabled {
		return "disabled"
	}
	if !p.Up {
		return "down"
	}
	text := "up"
	if p.Speed > 0 {
		text = unit.BitRate(p.Speed).String()
	}
	if p.Duplex == "half" {
		text += " half duplex"
	}
	return text
}

func farEnd(p *report.SwitchPort) string {
	var all []string
	for _, at := range p.Attached {
		if at.Trunk {
			all = append(all, "trunk to this host's "+at.Interface)
			continue
		}
		all = append(all, "this host's "+at.Interface)
	}
	for _, n := range p.Neighbours {
		if len(p.Attached) == 0 {
			all = append(all, strings.TrimSpace(cmp.Or(n.System, n.Chassis)+" "+n.Port))
		}
	}
	return strings.Join(all, ", ")
}

// openSwitches makes the poller of the configured switches.
func (d *daemon) openSwitches() {
	d.switches = switches.New(switches.Options{
		Switches: d.config.Switches, Host: d.config.Host, Env: os.Getenv, Append: d.append, Put: d.board.put, Log: d.log,
		Problem: func(part string, err error) {
			if d.board.problem(part, err) {
				d.report(part, err)
			}
		},
	})
}

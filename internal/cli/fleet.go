package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer/executor"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/report"
)

// hubProgram speaks with a fleet. Root's own program links no such thing.
const hubProgram = "linerate-hub"

// fleetCommand is `linerate fleet`. What only root may decide is here; all else is linerate-hub's.
func (a *app) fleetCommand() *cobra.Command {
	c := &cobra.Command{
		Use:         "fleet [COMMAND...]",
		Annotations: exits(exitNotPermitted),
		Short:       "Join a fleet, ask and change its hosts (runs linerate-hub), and trust who may change this one",
		Long: `Work with many hosts at one hub. linerate itself speaks with no hub: it runs the linerate-hub that is
installed beside it, or the first one in PATH, with the same arguments, streams and exit status.

  join, leave, node, invite               linerate-hub join, leave, node, invite
  status, hosts, ask, fetch, measure, key,
  apply, halt, resume, persist, undo ...  linerate-hub fleet ...

trust and distrust are linerate's own: root decides whose orders this host takes. linerate fleet
COMMAND --help says more of each.`,
		Example: "  linerate fleet join hub.example:7072 TOKEN\n  linerate fleet status\n" +
			"  linerate fleet ask knob net.ipv4.tcp_rmem -- group:web",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, words []string) error {
			a.json = a.json || asksJSON(words)
			if len(words) == 0 || words[0] == "--help" || words[0] == "-h" {
				return cmd.Help() // which names trust, as the help of linerate-hub does not
			}
			return a.runHub(words)
		},
	}
	c.AddCommand(a.trustCommand(), a.distrustCommand())
	return c
}

// runHub replaces this process by linerate-hub.
func (a *app) runHub(words []string) error {
	path, err := a.findHub()
	if err != nil {
		return err
	}
	args := []string{hubProgram}
	first := ""
	for _, w := range words {
		if !strings.HasPrefix(w, "-") {
			first = w
			break
		}
	}
	switch first {
	case "join", "leave", "node", "invite":
	default:
		args = append(args, "fleet")
	}
	err = sys.Exec(path, append(args, words...), os.Environ())
	if errors.Is(err, errors.ErrUnsupported) {
		return flagError{err, "type " + strings.Join(append(args, words...), " ")}
	}
	return err
}

// findHub returns the path of linerate-hub: beside this program, or in PATH.
func (a *app) findHub() (string, error) {
	var dirs []string
	own, err := os.Executable()
	if err == nil {
		dirs = append(dirs, filepath.Dir(own))
	}
	dirs = append(dirs, filepath.SplitList(a.env("PATH"))...)
	for _, dir := range dirs {
		path := filepath.Join(dir, hubProgram)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() &&
			info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	return "", flagError{fmt.Errorf("%s is neither beside %s nor in PATH: %w", hubProgram, own, fs.ErrNotExist),
		"install " + hubProgram + ", which comes with linerate: it speaks with the hub of a fleet"}
}

// trustFlags are those of trust and distrust.
type trustFlags struct {
	config, home, host string
	allow              []string
	replace            bool
}

func (a *app) trustCommand() *cobra.Command {
	var f trustFlags
	c := &cobra.Command{
		Use:         "trust NAME KEY",
		Annotations: exits(exitNotPermitted),
		Short:       "Let a person change this host by signed orders of its fleet",
		Long: `Write what linerate agent --orders needs: the id of this host in its fleet, and the public key of a
person, from the line that linerate fleet key prints. Compare the fingerprint with that person. The
id is what the node says that the hub gave to this host; compare it with linerate fleet hosts.

A key alone allows nothing: /etc/linerate/policy.yaml says what the fleet may change. --allow writes
one that allows some knobs, up to class d1, if there is none.`,
		Example: "  linerate fleet trust ann oy3J…= --allow 'net.ipv4.tcp_*'",
		RunE: func(_ *cobra.Command, words []string) error {
			key, err := base64.StdEncoding.Strict().DecodeString(words[1])
			if err != nil || len(key) != ed25519.PublicKeySize {
				return usagef("%.60q is not a public key: want %d bytes in base64", words[1], ed25519.PublicKeySize)
			}
			return a.trust(f, words[0], key)
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.home, "home", executor.DefaultHome, "directory of the membership that linerate-hub join made")
	c.Flags().StringVar(&f.host, "host", "", "id of this host in its fleet, instead of that of the membership")
	c.Flags().StringSliceVar(&f.allow, "allow", nil,
		"a knob that the fleet may change; * stands for one part; may be repeated")
	c.Flags().BoolVar(&f.replace, "replace", false, "replace another id of this host, or another key of this person")
	return c
}

func (f *trustFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.config, "config", executor.DefaultDir, "directory of host.id, order.keys and policy.yaml")
}

func (f *trustFlags) files() executor.Files {
	return executor.Files{FS: durable.OS(), Dir: f.config}
}

func (a *app) trust(f trustFlags, name string, key ed25519.PublicKey) error {
	id := strings.ToLower(f.host)
	if id == "" {
		var err error
		if id, err = executor.MemberID(durable.OS(), f.home); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return flagError{err, "join a fleet with linerate fleet join, or name the id with --host"}
			}
			return err
		}
	}
	written, err := f.files().Trust(id, name, key, f.replace)
	if err == nil && len(f.allow) > 0 {
		var path string
		if path, err = f.files().Allow(f.allow); err == nil {
			written = append(written, path)
		}
	}
	return a.trusted(f, written, err)
}

func (a *app) distrustCommand() *cobra.Command {
	var f trustFlags
	c := &cobra.Command{
		Use:         "distrust NAME",
		Annotations: exits(exitNotPermitted),
		Short:       "Take no further order that this person signs",
		RunE: func(_ *cobra.Command, words []string) error {
			written, err := f.files().Distrust(words[0])
			return a.trusted(f, written, err)
		},
	}
	f.add(c)
	return c
}

// trusted prints whose orders this host takes now.
func (a *app) trusted(f trustFlags, written []string, err error) error {
	switch {
	case errors.Is(err, executor.ErrOther):
		return flagError{err, "--replace replaces an id or a key; edit a policy by hand"}
	case errors.Is(err, fs.ErrPermission):
		return flagError{err, "run it as root: only root decides who changes this host"}
	case err != nil:
		return err
	}
	id, err := f.files().Host()
	if err != nil {
		return err
	}
	keys, err := f.files().Keys()
	if err != nil {
		return err
	}
	policy, err := f.files().Policy()
	if err != nil {
		return err
	}
	doc := &report.FleetTrustDocument{Envelope: a.envelope("").Of(report.SchemaFleetTrust), Host: id,
		Keys: []report.FleetKnownKey{}, Policy: policy.Meaning(), Files: append([]string{}, written...)}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		doc.Keys = append(doc.Keys, report.FleetKnownKey{Name: name, Fingerprint: order.Fingerprint(keys[name])})
	}
	if a.json {
		return report.Encode(a.out, doc)
	}
	fmt.Fprintf(a.out, "host %s of a fleet takes orders that are signed by:\n", doc.Host)
	for _, k := range doc.Keys {
		fmt.Fprintf(a.out, "  %s  %s\n", k.Name, k.Fingerprint)
	}
	if len(doc.Keys) == 0 {
		fmt.Fprintln(a.out, "  no person")
	}
	_, err = fmt.Fprintf(a.out, "%s\nlinerate agent --orders carries them out\n", strings.Join(doc.Policy, "\n"))
	return err
}

package daemon

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/peer/order"
	"github.com/linerate/linerate/internal/report"
)

// orderKey is the key with which one person signs orders.
type orderKey struct {
	name    string
	private ed25519.PrivateKey
}

func (k orderKey) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// keyHeader begins a file of a private key. A line with the name and one with the seed in base64
// follow.
const keyHeader = "linerate-order-key-v1"

// errKeyFile reports a file that is not one of a private key.
var errKeyFile = errors.New("not a file of an order key")

// readOrderKey reads a private key. A file that other users can read is refused: a signature of it
// would prove nothing.
func readOrderKey(name string) (orderKey, error) {
	var k orderKey
	info, err := os.Stat(name)
	if err != nil {
		return k, fmt.Errorf("read order key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return k, hinted{fmt.Errorf("read order key: other users can read %s (mode %04o): %w", name, info.Mode().Perm(),
			fs.ErrPermission), "chmod 600 " + name + "; make a new key if others may have read it"}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return k, fmt.Errorf("read order key: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if len(lines) != 3 || lines[0] != keyHeader || !order.ValidName(lines[1]) {
		return k, fmt.Errorf("read %s: %w", name, errKeyFile)
	}
	seed, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(seed) != ed25519.SeedSize {
		return k, fmt.Errorf("read %s: %w", name, errKeyFile)
	}
	return orderKey{lines[1], ed25519.NewKeyFromSeed(seed)}, nil
}

// makeOrderKey makes a private key and writes it. A file that is there is never replaced.
func makeOrderKey(file, name string) (orderKey, error) {
	if !order.ValidName(name) {
		return orderKey{}, usageError{fmt.Errorf("--name %.70q: want 1 to 64 of a-z, 0-9, '.', '_', '-'", name)}
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err == nil {
		err = durable.MkdirAll(durable.OS(), filepath.Dir(file), 0o700)
	}
	if err == nil {
		text := keyHeader + "\n" + name + "\n" + base64.StdEncoding.EncodeToString(private.Seed()) + "\n"
		err = durable.Replace(durable.OS(), file, []byte(text), 0o600)
	}
	if err != nil {
		return orderKey{}, fmt.Errorf("make order key %s: %w", order.Fingerprint(public), err)
	}
	return orderKey{name, private}, nil
}

// orderKeyFile is where the key of this user is, unless a flag says otherwise.
func orderKeyFile(env func(string) string) (string, error) {
	if dir := env("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "linerate", "order.key"), nil
	}
	if dir := env("HOME"); dir != "" {
		return filepath.Join(dir, ".config", "linerate", "order.key"), nil
	}
	return "", usageError{errors.New("no place for an order key: HOME is not set; give --key FILE")}
}

// person is how this user is called; empty: not known.
func person(env func(string) string) string {
	name := env("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	return strings.ToLower(name)
}

func (a *app) orderKeyCommand() *cobra.Command {
	var file, name string
	c := &cobra.Command{
		Use:   "key",
		Short: "Make the key with which you sign changes of hosts, and print its public part",
		Long: `key makes a key, if you have none, and prints the line with which root on each host trusts it. The
private part stays in a file that only you can read: the hub never has it. A person who has this file can
change the hosts, within the policy of each.`,
		Example: "  linerate-hub fleet key\n  linerate-hub fleet key --name ann --key /media/stick/order.key",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if file == "" {
				if file, err = orderKeyFile(a.env); err != nil {
					return err
				}
			}
			k, err := readOrderKey(file)
			made := errors.Is(err, fs.ErrNotExist)
			if made {
				if name == "" {
					name = person(a.env)
				}
				k, err = makeOrderKey(file, name)
			}
			if err != nil {
				return err
			}
			if name != "" && k.name != name {
				return usageError{fmt.Errorf("%s holds the key of %s, not of %s", file, k.name, name)}
			}
			public := base64.StdEncoding.EncodeToString(k.public())
			doc := &report.FleetKeyDocument{Envelope: report.NewEnvelope(version, about().Name).Of(report.SchemaFleetKey),
				Name: k.name, Public: public, Fingerprint: order.Fingerprint(k.public()), File: file, Made: made,
				Line: "linerate fleet trust " + k.name + " " + public}
			return a.print(doc, func(w io.Writer) {
				fmt.Fprintf(w, "key of %s in %s\nfingerprint %s\n\non each host, as root:\n  %s\n", doc.Name, doc.File,
					doc.Fingerprint, doc.Line)
			})
		},
	}
	c.Flags().StringVar(&file, "key", "",
		"file of the private key (default linerate/order.key in $XDG_CONFIG_HOME or ~/.config)")
	c.Flags().StringVar(&name, "name", "", "your name, as hosts are to know it (default: your user name)")
	return c
}

package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/linerate/linerate/hub/internal/alert"
	"github.com/linerate/linerate/hub/internal/schedule"
	"github.com/linerate/linerate/hub/internal/switches"
	"github.com/linerate/linerate/internal/base/unit"
)

// Config is the content of the file given with --config; flags of the same names override it. The
// zero value is a hub with all defaults.
type Config struct {
	Listen string `yaml:"listen"` // HOST:PORT; default 127.0.0.1:7071
	// under which browsers may open the page, besides localhost and the address that the hub
	// listens on
	Names []string `yaml:"names"`
	Data  string   `yaml:"data"` // directory of the history
	Host  string   `yaml:"host"` // label host of this host's series; default: the host name

	Retention unit.Span `yaml:"retention"` // how long the hub keeps samples; default 15d
	MaxSize   Size      `yaml:"max_size"`  // what samples may take on disk; default 4GB
	// EventRetention is how long the hub keeps events and their documents; default 400d, since
	// people look for a change after a year.
	EventRetention unit.Span `yaml:"event_retention"`

	PasswordFile string `yaml:"password_file"` // written by `linerate-hub password`
	Certificate  string `yaml:"tls_certificate"`
	Key          string `yaml:"tls_key"`
	ClientCA     string `yaml:"client_ca"`

	// directory of linerate's journal, runs and measurements on this host; default
	// /var/lib/linerate
	State string `yaml:"state"`
	// socket of `linerate agent`, for a hub that may not read State itself; default
	// /run/linerate/agent.sock
	Agent string `yaml:"agent"`

	Schedules    []schedule.Config `yaml:"schedules"`
	RemoteWrites []RemoteWrite     `yaml:"remote_write"`
	// besides the rules that come with the hub; `off: true` ends one of those
	Alerts []alert.Config `yaml:"alerts"`
	// alerting rules in Prometheus's format; patterns as the shell has them
	RuleFiles []string `yaml:"rule_files"`

	Fleet Fleet `yaml:"fleet"` // other hosts

	Switches []switches.Config `yaml:"switches"` // whose ports the hub reads by SNMP
}

// Size is a number of bytes, in the form that package unit parses.
type Size int64

// UnmarshalYAML parses a size.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	if err := s.parse(n.Value); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

func (s *Size) parse(text string) error {
	b, err := unit.ParseBytes(text)
	if err == nil && b <= 0 {
		err = errors.New("must be more than 0")
	}
	if err == nil {
		*s = Size(b)
	}
	return err
}

// ReadConfig reads a YAML file. Unknown keys are errors, because a misspelt limit limits nothing.
func ReadConfig(name string) (Config, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return Config{}, err
	}
	c, err := ParseConfig(b)
	if err != nil {
		return Config{}, fmt.Errorf("read %s: %w", name, err)
	}
	return c, nil
}

// ParseConfig parses the content of a file and validates it: see [Config.Validate].
func ParseConfig(b []byte) (Config, error) {
	var c Config
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) { // an empty file has only defaults
		return Config{}, oneLine(err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return Config{}, errors.New("more than one document")
	}
	return c, c.Validate()
}

// oneLine returns the decoder's error on one line.
func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
}

// Validate returns the first mistake in the configuration. It opens only rule files.
func (c *Config) Validate() error {
	if err := schedule.Validate(c.Schedules); err != nil {
		return err
	}
	if err := alert.Validate(c.Alerts, c.RuleFiles...); err != nil {
		return err
	}
	if err := switches.Validate(c.Switches); err != nil {
		return err
	}
	if c.Retention < 0 || c.EventRetention < 0 {
		return errors.New("retention: must be more than 0")
	}
	for _, w := range c.RemoteWrites {
		if err := w.Validate(); err != nil {
			return err
		}
	}
	if (c.Certificate == "") != (c.Key == "") {
		return errors.New("tls_certificate and tls_key: give both or none")
	}
	return c.Fleet.validate()
}

// fill sets empty fields to their defaults. env is the environment of the process: systemd names
// the directory that it made in STATE_DIRECTORY.
func (c *Config) fill(env func(string) string, root bool) error {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("read the host's name: %w", err)
		}
		c.Host = name
	}
	if c.Data == "" {
		switch home := env("XDG_STATE_HOME"); {
		case env("STATE_DIRECTORY") != "":
			c.Data, _, _ = strings.Cut(env("STATE_DIRECTORY"), ":")
		case root:
			c.Data = "/var/lib/linerate-hub"
		case home != "":
			c.Data = filepath.Join(home, "linerate-hub")
		case env("HOME") != "":
			c.Data = filepath.Join(env("HOME"), ".local", "state", "linerate-hub")
		default:
			return errors.New("no directory for the history: HOME is not set; give --data DIR")
		}
	}
	if c.State == "" {
		c.State = env("LINERATE_STATE")
	}
	if c.State == "" {
		c.State = "/var/lib/linerate"
	}
	if c.Agent == "" {
		c.Agent = DefaultAgent
	}
	if c.Retention == 0 {
		c.Retention = unit.Span(15 * 24 * time.Hour)
	}
	if c.MaxSize == 0 {
		c.MaxSize = 4e9
	}
	if c.EventRetention == 0 {
		c.EventRetention = unit.Span(400 * 24 * time.Hour)
	}
	return nil
}

// configAt reads the named file, or hub.yaml in the directory of systemd's ConfigurationDirectory=
// or in /etc/linerate-hub. A missing default file is not an error.
func configAt(name string, env func(string) string) (Config, string, error) {
	if name != "" {
		c, err := ReadConfig(name)
		return c, name, err
	}
	dir, _, _ := strings.Cut(env("CONFIGURATION_DIRECTORY"), ":")
	if dir == "" {
		dir = "/etc/linerate-hub"
	}
	name = filepath.Join(dir, "hub.yaml")
	c, err := ReadConfig(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Config{}, "", nil
	}
	return c, name, err
}

// passwordFile returns the path of the page's password.
func (c *Config) passwordFile() string {
	if c.PasswordFile != "" {
		return c.PasswordFile
	}
	return filepath.Join(c.Data, "password")
}

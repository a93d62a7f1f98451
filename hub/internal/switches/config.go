package switches

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/linerate/linerate/hub/internal/credential"
	"github.com/linerate/linerate/hub/internal/switches/snmp"
	"github.com/linerate/linerate/internal/base/unit"
)

// Bounds of what can be configured.
const (
	MaxSwitches = 64
	minEvery    = 10 * time.Second // agents refresh their counters no more often
	maxEvery    = time.Minute      // the page looks at two and a half minutes at least
	maxTimeout  = 10 * time.Second
	maxName     = 64
)

// Defaults.
const (
	DefaultEvery   = 30 * time.Second
	DefaultTimeout = 2 * time.Second
	// CommunityEnv is the variable with the community, unless the configuration names another.
	CommunityEnv = "LINERATE_SNMP_COMMUNITY"
	// defaultCommunity is what most agents are delivered with.
	defaultCommunity = "public"
)

// Config is one switch. Empty fields have defaults.
type Config struct {
	Name    string `yaml:"name"`    // letters, digits, '.', '_' and '-'; the label of its series
	Address string `yaml:"address"` // HOST or HOST:PORT; default port 161

	// Version 2c. Without either, the variable LINERATE_SNMP_COMMUNITY, or "public".
	CommunityFile string `yaml:"community_file"`
	CommunityEnv  string `yaml:"community_env"` // name of a variable of the environment

	// Version 3, if there is a user.
	User           string `yaml:"user"`
	Auth           string `yaml:"auth"`             // protocol; default sha256 with a key
	AuthKeyFile    string `yaml:"auth_key_file"`    // pass phrase of at least eight characters
	Privacy        string `yaml:"privacy"`          // protocol; default aes with a key
	PrivacyKeyFile string `yaml:"privacy_key_file"` // needs auth_key_file

	Every   unit.Span `yaml:"every"`   // 10s to 1m; default 30s
	Timeout unit.Span `yaml:"timeout"` // of one of three requests; default 2s
	// Ports are patterns of names or aliases (Gi1/0/*, uplink-?); default: Ethernet and aggregates.
	Ports []string `yaml:"ports"`
	// Attached names the ports at which this host's interfaces hang, where LLDP does not.
	Attached map[string]string `yaml:"attached"`
}

func (c Config) every() time.Duration { return cmp.Or(c.Every.Duration(), DefaultEvery) }

// Validate returns what is wrong with the switches of a configuration. It opens no file.
func Validate(configs []Config) error {
	if len(configs) > MaxSwitches {
		return fmt.Errorf("switches: %d are more than %d", len(configs), MaxSwitches)
	}
	names := make(map[string]bool)
	for i, c := range configs {
		if c.Name == "" {
			return fmt.Errorf("switch %d of the list: no name: write name: and a unique word", i+1)
		}
		if err := c.Validate(); err != nil {
			return fmt.Errorf("switch %.64q: %w", c.Name, err)
		}
		if names[c.Name] {
			return fmt.Errorf("switch %s: named twice: give each its own name", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// Validate returns what is wrong with a switch.
func (c Config) Validate() error {
	if len(c.Name) > maxName || strings.ContainsFunc(c.Name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}) {
		return fmt.Errorf("name: write up to %d letters, digits, '.', '_' or '-'", maxName)
	}
	if c.Address == "" {
		return errors.New("no address: write address: HOST, or HOST:PORT")
	}
	if _, _, err := snmp.Split(c.Address); err != nil {
		return err
	}
	v3 := c.AuthKeyFile != "" || c.PrivacyKeyFile != "" || c.Auth != "" || c.Privacy != ""
	every, timeout := c.Every.Duration(), c.Timeout.Duration()
	switch {
	case c.User == "" && v3:
		return errors.New("keys without a user: write user: too")
	case c.User != "" && (c.CommunityFile != "" || c.CommunityEnv != ""):
		return errors.New("give a user (version 3) or a community (version 2c), not both")
	case c.CommunityFile != "" && c.CommunityEnv != "":
		return errors.New("give community_file or community_env, not both")
	case c.PrivacyKeyFile != "" && c.AuthKeyFile == "":
		return errors.New("privacy_key_file: needs auth_key_file too")
	case c.Auth != "" && c.AuthKeyFile == "":
		return errors.New("auth: needs auth_key_file too")
	case c.Privacy != "" && c.PrivacyKeyFile == "":
		return errors.New("privacy: needs privacy_key_file too")
	case c.Auth != "" && !slices.Contains(snmp.Auths(), c.Auth):
		return fmt.Errorf("auth %.20q: write one of %s", c.Auth, strings.Join(snmp.Auths(), ", "))
	case c.Privacy != "" && !slices.Contains(snmp.Privacies(), c.Privacy):
		return fmt.Errorf("privacy %.20q: write one of %s", c.Privacy, strings.Join(snmp.Privacies(), ", "))
	case every != 0 && (every < minEvery || every > maxEvery):
		return fmt.Errorf("every %v: write %v to %v", c.Every, unit.Span(minEvery), unit.Span(maxEvery))
	case timeout < 0 || timeout > maxTimeout:
		return fmt.Errorf("timeout %v: write up to %v", c.Timeout, unit.Span(maxTimeout))
	}
	for _, p := range c.Ports {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("ports: %.64q is not a pattern: write Gi1/0/* or a name", p)
		}
	}
	return nil
}

// shortestKey is what RFC 3414 section 11.2 asks of pass phrases.
const shortestKey = 8

// session opens a session with the secrets of the configuration, which it reads each time.
func (c Config) session(env func(string) string) (*snmp.Session, error) {
	o := snmp.Options{Address: c.Address, Timeout: cmp.Or(c.Timeout.Duration(), DefaultTimeout)}
	if c.User == "" {
		o.Credentials.Community = env(cmp.Or(c.CommunityEnv, CommunityEnv))
		if c.CommunityEnv != "" && o.Credentials.Community == "" {
			return nil, fmt.Errorf("community_env: the variable %s is empty", c.CommunityEnv)
		}
		if c.CommunityFile != "" {
			text, err := credential.Secret(c.CommunityFile)
			if err != nil {
				return nil, fmt.Errorf("community_file: %w", err)
			}
			o.Credentials.Community = text
		}
		o.Credentials.Community = cmp.Or(o.Credentials.Community, defaultCommunity)
		return snmp.Open(o)
	}
	o.Credentials.User = c.User
	for _, k := range []struct {
		what, file, protocol string
		key, used            *string
	}{
		{"auth_key_file", c.AuthKeyFile, cmp.Or(c.Auth, snmp.Auths()[0]), &o.Credentials.AuthKey, &o.Credentials.Auth},
		{"privacy_key_file", c.PrivacyKeyFile, cmp.Or(c.Privacy, snmp.Privacies()[0]), &o.Credentials.PrivacyKey,
			&o.Credentials.Privacy},
	} {
		if k.file == "" {
			continue
		}
		text, err := credential.Secret(k.file)
		if err == nil && len(text) < shortestKey {
			err = fmt.Errorf("read %s: the key has fewer than %d characters", k.file, shortestKey)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.what, err)
		}
		*k.key, *k.used = text, k.protocol
	}
	return snmp.Open(o)
}

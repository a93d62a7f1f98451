package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/linerate/linerate/hub/internal/fleet/desk"
)

// Fleet is the section of the file about other hosts. Without an address the hub has no fleet.
type Fleet struct {
	Join string `yaml:"join"` // HOST:PORT where hosts join
	// HOST:PORT of the bus; default: that of Join, one port higher. Ignored with Servers.
	Bus string `yaml:"bus"`
	// HOST:PORT under which hosts find Join; default: Join, with the name of this host for an
	// address of all interfaces
	Address string `yaml:"address"`

	// A cluster of nats-server elsewhere instead of the embedded bus: tls://HOST:PORT. It needs the
	// configuration that `linerate-hub fleet resolver` prints.
	Servers []string `yaml:"servers"`
	// file with the certificates that sign those of the servers
	Roots string `yaml:"roots"`
	// name in the servers' certificates; default: the name in each address
	ServerName string `yaml:"server_name"`
}

// fleetMemoryLimit replaces the memory limit of a hub with a fleet: 10 000 connections take some
// 0.7 GB.
const fleetMemoryLimit = 1200 << 20

// on reports whether there is a fleet.
func (f *Fleet) on() bool { return f.Join != "" }

// validate returns the first mistake.
func (f *Fleet) validate() error {
	if !f.on() {
		if f.Bus != "" || f.Address != "" || len(f.Servers) > 0 {
			return errors.New("fleet: join: name the HOST:PORT where hosts join")
		}
		return nil
	}
	for key, address := range map[string]string{"join": f.Join, "bus": f.Bus, "address": f.Address} {
		if address == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(address); err != nil || !isPort(port) {
			return fmt.Errorf("fleet: %s: %.100q is not HOST:PORT", key, address)
		}
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n < 1<<16
}

// busAddress returns the address of the embedded bus.
func (f *Fleet) busAddress() string {
	host, port, err := net.SplitHostPort(f.Join)
	n, err2 := strconv.Atoi(port)
	if f.Bus != "" || err != nil || err2 != nil {
		return f.Bus
	}
	if n != 0 {
		n++
	}
	return net.JoinHostPort(host, strconv.Itoa(n))
}

// fleetDir is where a fleet has its keys, its register and its socket.
func (c *Config) fleetDir() string { return filepath.Join(c.Data, "fleet") }

// openFleet starts to listen for hosts.
func (d *daemon) openFleet() (*desk.Desk, error) {
	c := &d.config
	var roots []byte
	if c.Fleet.Roots != "" {
		var err error
		if roots, err = os.ReadFile(c.Fleet.Roots); err != nil {
			return nil, fmt.Errorf("read certificates of the bus: %w", err)
		}
	}
	return desk.Open(desk.Options{
		Dir: c.fleetDir(), Join: c.Fleet.Join, Bus: c.Fleet.busAddress(), Address: c.Fleet.Address, Name: c.Host,
		Version: version, Log: d.log, Servers: c.Fleet.Servers, Roots: roots, ServerName: c.Fleet.ServerName,
	})
}

// homeDir is where a host keeps its membership.
func homeDir(given string, env func(string) string, root bool) (string, error) {
	if given != "" {
		return given, nil
	}
	if dir := env("STATE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	if root {
		return "/var/lib/linerate-node", nil
	}
	if dir := cmp.Or(env("XDG_STATE_HOME"), ""); dir != "" {
		return filepath.Join(dir, "linerate-node"), nil
	}
	if dir := env("HOME"); dir != "" {
		return filepath.Join(dir, ".local", "state", "linerate-node"), nil
	}
	return "", errors.New("no directory for the membership: HOME is not set; give --home DIR")
}

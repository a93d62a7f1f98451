package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/kernel/sys"
	"github.com/linerate/linerate/internal/peer/roster"
	"github.com/linerate/linerate/internal/report"
	"github.com/linerate/linerate/internal/report/text"
	"github.com/linerate/linerate/internal/wire"
)

const (
	// defaultPeers is the value of --peers without a file.
	defaultPeers = "default"
	// servicePeers is the file of the serve that systemd starts, in the directory that its unit
	// makes.
	servicePeers = "/var/lib/linerate-serve/peers.json"
)

// fit refuses flags that do not go together.
func (f serveFlags) fit(changed func(string) bool) error {
	for _, pair := range [...][2]string{
		{"stdio", "accept"}, {"stdio", "peers"}, {"stdio", "once"}, {"once", "accept"}, {"peers", "once"},
		{"peers", "allow-tuning"}, {"peers", "key"}, {"peers", "key-file"}, {"peers", "key-expires"},
		{"peers", "key-clients"},
		// Over ssh there is no port and no key: ssh has authenticated the other side.
		{"stdio", "listen"}, {"stdio", "key"}, {"stdio", "key-file"}, {"stdio", "key-expires"}, {"stdio", "key-clients"},
	} {
		if changed(pair[0]) && changed(pair[1]) {
			why := "`linerate serve --help` says more"
			if pair[0] == "peers" {
				why = "the file says what each peer may do and how long: `linerate peers --help`"
			}
			return usageError{flagError{fmt.Errorf("serve: --%s does not go with --%s", pair[1], pair[0]), why}}
		}
	}
	if changed("copy") && !changed("accept") {
		return usagef("serve: --copy needs --accept: a linerate on the other side asks for it by measure --copy")
	}
	return nil
}

// peersFile returns the file of the peers: the one that is named; or that of the state directory,
// if the user names one; or that of the service for root, and of this user's state directory for
// others.
func (a *app) peersFile(name string) (roster.File, error) {
	if name != "" && name != defaultPeers {
		path, err := filepath.Abs(name)
		return roster.File{FS: durable.OS(), Path: path}, err
	}
	if os.Geteuid() == 0 && a.state == "" && a.env("LINERATE_STATE") == "" {
		return roster.File{FS: durable.OS(), Path: servicePeers}, nil
	}
	dir, err := a.stateDir()
	return roster.File{FS: durable.OS(), Path: filepath.Join(dir, "peers.json")}, err
}

// followPeers returns the peers as they are while serve runs.
func (a *app) followPeers(name string, log func(string)) (*roster.Live, error) {
	file, err := a.peersFile(name)
	if err != nil {
		return nil, err
	}
	live, err := roster.Follow(file, log)
	if errors.Is(err, roster.ErrDamaged) {
		err = flagError{err, "mend the file, or move it away and run `linerate peers add` for each peer"}
	}
	return live, err
}

// openPort opens the port, or takes over the one that systemd has opened for this process.
func openPort(ctx context.Context, addr string, ring *wire.Keyring) (*wire.Listener, error) {
	f, err := sys.InheritedSocket()
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return wire.ListenKeys(ctx, addr, ring)
	}
	defer f.Close() // the listener has a duplicate
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("take over the socket of systemd: %w", err)
	}
	socket, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("take over the socket of systemd: %s is not a TCP port", l.Addr())
	}
	adopted, err := wire.Adopt(socket, ring)
	if err != nil {
		_ = socket.Close()
	}
	return adopted, err
}

// pasted returns the line for the other host. The key is in the environment and not an argument,
// which every user of that host could read.
func pasted(k wire.Key, address string) string {
	return fmt.Sprintf("LINERATE_KEY=%s linerate measure %s", k, address)
}

// announcePeers prints where a server listens and for whom. It prints no key: `linerate peers add`
// printed each once.
func (a *app) announcePeers(doc *report.ServeDocument, peers *roster.Live) error {
	doc.PeersFile = peers.File().Path
	for _, p := range peers.Peers() {
		doc.Peers = append(doc.Peers, p.Name)
		doc.AllowTuning = doc.AllowTuning || p.Tuning != nil
	}
	return a.print(doc, func(text.Style) error {
		whom := "no peer yet: `linerate peers add NAME` makes a key"
		if n := len(doc.Peers); n > 0 {
			whom = fmt.Sprintf("%d peers: %s", n, strings.Join(doc.Peers[:min(n, 8)], ", "))
			if n == 1 {
				whom = "the peer " + doc.Peers[0]
			}
			if n > 8 {
				whom += ", …"
			}
		}
		if _, err := fmt.Fprintf(a.out, "listening on %s for the peers in %s\n%s\n", doc.Listen, doc.PeersFile,
			whom); err != nil {
			return err
		}
		return a.announceDialects(doc)
	})
}

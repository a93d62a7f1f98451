package desk

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/linerate/linerate/hub/internal/fleet/bus"
	"github.com/linerate/linerate/hub/internal/fleet/gather"
	"github.com/linerate/linerate/hub/internal/fleet/inventory"
	"github.com/linerate/linerate/hub/internal/fleet/node"
	"github.com/linerate/linerate/hub/internal/fleet/swarm"
	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/base/testenv"
	"github.com/linerate/linerate/internal/report"
)

// asNATS makes a process of this test binary a nats-server with a configuration file: what its main
// program does with `-c FILE`.
const asNATS = "LINERATE_FLEET_NATS"

func beNATS(file string) {
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		panic(err)
	}
	s, err := server.NewServer(o)
	if err != nil {
		panic(err)
	}
	if err := server.Run(s); err != nil {
		panic(err)
	}
	s.WaitForShutdown()
}

// natsProcess is a nats-server of its own.
type natsProcess struct {
	t    *testing.T
	file string
	cmd  *exec.Cmd
}

func (n *natsProcess) start() {
	n.t.Helper()
	own, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	n.cmd = exec.Command(own)
	n.cmd.Env = append(os.Environ(), asNATS+"="+n.file)
	dieWithParent(n.cmd)
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(n.kill)
}

// kill ends it as a power cut does.
func (n *natsProcess) kill() {
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(syscall.SIGKILL)
		_ = n.cmd.Wait() // it was killed
		n.cmd = nil
	}
}

// outside is what servers elsewhere need: certificates of their own, and the trust of a fleet.
type outside struct {
	dir   string
	roots []byte
	trust *bus.Trust
	cert  string // of the configuration: tls {…}
}

// outsideOf makes the files for servers that serve the fleet with its keys below dir.
func outsideOf(t *testing.T, dir string) *outside {
	t.Helper()
	o := &outside{dir: t.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nats"},
		DNSNames:  []string{"nats.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	o.roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	certFile, keyFile := filepath.Join(o.dir, "cert.pem"), filepath.Join(o.dir, "key.pem")
	err = errors.Join(os.WriteFile(certFile, o.roots, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	o.cert = fmt.Sprintf("tls {cert_file: %q, key_file: %q, handshake_first: true, timeout: 30}\n", certFile, keyFile)
	if o.trust, err = bus.OpenTrust(durable.OS(), filepath.Join(dir, keysDir)); err != nil {
		t.Fatal(err)
	}
	return o
}

// server writes the configuration of one server. More is added to it.
func (o *outside) server(t *testing.T, name string, port int, more string) *natsProcess {
	t.Helper()
	text, err := o.trust.Resolver(filepath.Join(o.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	n := &natsProcess{t: t, file: filepath.Join(o.dir, name+".conf")}
	config := fmt.Sprintf("server_name: %s\nlisten: \"127.0.0.1:%d\"\nauthorization {timeout: 30}\n%s%s%s", name, port,
		o.cert, more, text)
	if err := os.WriteFile(n.file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	n.start()
	return n
}

// answered asks all members, and returns how many answered.
func answered(t *testing.T, dir string) int {
	t.Helper()
	var doc report.FleetAskDocument
	if err := Call(t.Context(), dir, Request{Do: DoAsk, Verb: node.VerbPing, WithinMS: 2000}, &doc, nil); err != nil {
		return 0 // no server is up at this moment
	}
	n := 0
	for _, a := range doc.Answers {
		n += len(a.Hosts)
	}
	return n
}

// TestCluster runs a fleet on three servers of its own and kills one and then two of them while
// documents are fetched. No host is lost, no document is damaged, and who was removed stays out.
func TestCluster(t *testing.T) {
	testenv.Need(t, testenv.Long)
	const hosts = 40
	o := options(t)
	port := testenv.FreePorts(t, 6)
	out := outsideOf(t, o.Dir)
	var routes []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("\"nats-route://127.0.0.1:%d\"", port+3+i))
		o.Servers = append(o.Servers, fmt.Sprintf("tls://127.0.0.1:%d", port+i))
	}
	var servers []*natsProcess
	for i := range 3 {
		servers = append(servers, out.server(t, fmt.Sprint("n", i), port+i, fmt.Sprintf(
			"cluster {name: fleet, listen: \"127.0.0.1:%d\", routes: [%s]}\n", port+3+i, strings.Join(routes, ", "))))
	}
	o.Roots, o.ServerName = out.roots, "nats.test"
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		opened, err := Open(o)
		if err == nil {
			opened.Close()
			break
		}
		if time.Now().After(deadline) { // the servers take a moment to listen
			t.Fatal(err)
		}
	}
	start(t, o)
	address, token := invite(t, o.Dir, Request{Uses: hosts})
	var s swarm.Swarm
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: hosts, Address: address, Token: token,
			BeatEvery: 200 * time.Millisecond, Longest: time.Second, Document: 1 << 20})
	})
	defer done.Wait()
	defer stop()
	all := func() bool { return answered(t, o.Dir) == hosts }
	until(t, "40 hosts on three servers", all)
	// One is killed in the middle of the work, then a second.
	for i, victim := range servers[:2] {
		go func() {
			time.Sleep(30 * time.Millisecond)
			_ = victim.cmd.Process.Signal(syscall.SIGKILL)
		}()
		var doc report.FleetFetchDocument
		err := Call(t.Context(), o.Dir, Request{Do: DoFetch, Document: node.DocumentInspect}, &doc, func(i Item) error {
			if inventory.Hash(i.Data) != i.Hash {
				t.Errorf("the document of %s is damaged", i.Name)
			}
			return nil
		})
		if err != nil || len(doc.Fetched)+len(doc.Missing) != hosts {
			t.Errorf("kill %d: %d fetched and %d missing of %d: %v", i+1, len(doc.Fetched), len(doc.Missing), hosts, err)
		}
		t.Logf("kill %d: %d fetched, %d named as missing", i+1, len(doc.Fetched), len(doc.Missing))
		victim.kill()
		until(t, "40 hosts after a kill", all)
	}
	for _, back := range servers[:2] {
		back.start()
	}
	until(t, "40 hosts with three servers again", all)
	var page report.FleetHostsDocument
	if err := Call(t.Context(), o.Dir, Request{Do: DoHosts, Limit: 1}, &page, nil); err != nil {
		t.Fatal(err)
	}
	id := page.Hosts[0].ID
	if err := Call(t.Context(), o.Dir, Request{Do: DoRemove, IDs: []string{id}, Reason: "test"},
		&report.FleetDecideDocument{}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "the removed host has ended", func() bool { return s.Failed.Load() == 1 && answered(t, o.Dir) == hosts-1 })
}

// TestLeaf cuts a site with a leaf node off the centre. Its hosts keep their connections and answer
// a program that asks at the site; when the centre is back, it reaches them again.
func TestLeaf(t *testing.T) {
	testenv.Need(t, testenv.Long)
	const hosts = 10
	o := options(t)
	port := testenv.FreePorts(t, 3)
	out := outsideOf(t, o.Dir)
	credentials, account, err := out.trust.Leaf("ams")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out.dir, "ams.creds")
	if err := os.WriteFile(file, credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	centre := out.server(t, "centre", port, fmt.Sprintf("leafnodes {listen: \"127.0.0.1:%d\"}\n", port+1))
	out.server(t, "ams", port+2, fmt.Sprintf(
		"leafnodes {reconnect: 1, remotes: [{url: \"nats-leaf://127.0.0.1:%d\", account: %s, credentials: %q}]}\n",
		port+1, account, file))
	atSite := []string{fmt.Sprintf("tls://127.0.0.1:%d", port+2)}
	o.Servers, o.Roots, o.ServerName = atSite, out.roots, "nats.test"
	// The hosts of a site learn the servers of the site from the hub that let them in.
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		opened, err := Open(o)
		if err == nil {
			opened.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	siteHub := start(t, o)
	address, token := invite(t, o.Dir, Request{Uses: hosts})
	var s swarm.Swarm
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		s.Run(ctx, swarm.Options{Hosts: hosts, Address: address, Token: token,
			BeatEvery: 200 * time.Millisecond, Longest: time.Second})
	})
	defer done.Wait()
	defer stop()
	until(t, "hosts at the site", func() bool { return answered(t, o.Dir) == hosts })
	var ids []string
	for _, h := range siteHub.hosts.Hosts() {
		ids = append(ids, h.ID)
	}
	// What asks at the centre reaches the hosts behind the leaf.
	atCentre, err := bus.Attach(bus.Options{Trust: out.trust, URLs: []string{fmt.Sprintf("tls://127.0.0.1:%d", port)},
		Roots: out.roots, ServerName: "nats.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer atCentre.Close()
	conn, err := atCentre.Connect("centre")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	asker, err := gather.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	fromCentre := func() bool {
		g, err := asker.Ask(t.Context(), gather.Question{Verb: node.VerbPing, IDs: ids, Within: time.Second})
		return err == nil && len(g.Answers) == hosts
	}
	until(t, "the centre reaches the site", fromCentre)
	before := s.Connected.Load()
	centre.kill()
	if fromCentre() {
		t.Error("the centre answers after its end")
	}
	until(t, "answers at the site, which is cut off", func() bool { return answered(t, o.Dir) == hosts })
	if n := s.Connected.Load() - before; n != 0 {
		t.Errorf("%d hosts lost their connection when the centre went away", n)
	}
	centre.start()
	until(t, "the centre reaches the site again", fromCentre)
}

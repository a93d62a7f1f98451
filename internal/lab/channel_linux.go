package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/lab/link"
	"github.com/linerate/linerate/internal/lab/scenario"
)

// The maker of a world and its agents exchange one JSON object per packet of a SOCK_SEQPACKET
// socket pair, with descriptors beside it. Requests are numbered and replies carry the number. Both
// ends are the same binary, so the protocol needs no version.

// request is a request of the maker to an agent. Exactly one of the bodies is set.
type request struct {
	ID uint64     `json:"id"`
	Be *beRequest `json:"be,omitempty"` // the first request
	// hub; descriptors: the new host's end of its channel, and the network namespace that it joins,
	// if it does not get its own
	Spawn     *spawnRequest     `json:"spawn,omitempty"`
	Join      *joinRequest      `json:"join,omitempty"`       // hub; descriptors: both hosts' network namespaces
	Relink    *scenario.Link    `json:"relink,omitempty"`     // hub
	LinkCount bool              `json:"link_count,omitempty"` // hub
	Configure *configureRequest `json:"configure,omitempty"`  // host
	Run       *runRequest       `json:"run,omitempty"`        // host; descriptors: stdin, stdout, stderr
	Signal    *signalRequest    `json:"signal,omitempty"`     // host
	Snapshot  bool              `json:"snapshot,omitempty"`   // host; descriptor: where to write a JSON object
}

type beRequest struct {
	Hub   bool              `json:"hub,omitempty"`
	Name  string            `json:"name"`
	Known map[string]string `json:"known,omitempty"` // names and addresses for /etc/hosts
}

type spawnRequest struct {
	Name string `json:"name"`
}

type joinRequest struct {
	Devices [2]string      `json:"devices"`
	Link    *scenario.Link `json:"link,omitempty"` // nil: a plain veth
}

type configureRequest struct {
	Rename    map[string]string  `json:"rename,omitempty"` // devices that are down
	Up        []string           `json:"up,omitempty"`     // devices
	MTU       map[string]int     `json:"mtu,omitempty"`    // by device
	Addresses []addressRequest   `json:"addresses,omitempty"`
	Routes    []routeRequest     `json:"routes,omitempty"`
	Settings  []scenario.Setting `json:"settings,omitempty"`
	Await     []string           `json:"await,omitempty"` // devices whose carrier is waited for, at the end
}

type addressRequest struct{ Device, CIDR string }

type routeRequest struct{ Destination, Gateway string }

type runRequest struct {
	Args []string `json:"args"` // Args[0] "linerate" is this binary
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"dir,omitempty"`

	// Terminal makes the command's process group the foreground of the terminal on its stdin, so
	// that the command may read and gets the keys that send signals.
	Terminal bool `json:"terminal,omitempty"`
}

type signalRequest struct {
	Run    uint64 `json:"run"` // the request that started it
	Signal int    `json:"signal"`
}

// reply answers a request. A run has two: started and, later, exited.
type reply struct {
	ID       uint64       `json:"id"`
	Error    string       `json:"error,omitempty"`
	Kind     string       `json:"kind,omitempty"` // not-exist, permission: for errors.Is
	Warnings []string     `json:"warnings,omitempty"`
	PID      int          `json:"pid,omitempty"` // in the host's own pid namespace
	Exited   *exitReply   `json:"exited,omitempty"`
	Counts   *link.Counts `json:"counts,omitempty"`
}

type exitReply struct {
	Code   int           `json:"code"`
	Signal int           `json:"signal,omitempty"`
	CPU    time.Duration `json:"cpu,omitempty"` // user and system, of the command and the children it waited for
}

// remoteError is an error that happened in an agent. Its text is complete.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string        { return e.text }
func (e *remoteError) Is(target error) bool { return e.is != nil && target == e.is }

func (r *reply) fail(err error) {
	if err == nil {
		return
	}
	r.Error = err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Kind = "not-exist"
	case errors.Is(err, fs.ErrPermission):
		r.Kind = "permission"
	}
}

func (r *reply) err() error {
	if r.Error == "" {
		return nil
	}
	kinds := map[string]error{"not-exist": fs.ErrNotExist, "permission": fs.ErrPermission}
	return &remoteError{text: r.Error, is: kinds[r.Kind]}
}

// channel is one end of a socket pair.
type channel struct {
	conn *net.UnixConn
	mu   sync.Mutex // one packet at a time
}

// maxPacket bounds a packet; the kernel's default send buffer does not take a larger one.
const maxPacket = 192 << 10

// newChannel wraps a descriptor and takes ownership of it.
func newChannel(f *os.File) (*channel, error) {
	defer f.Close() // FileConn has a duplicate
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("open lab channel: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("open lab channel: not a unix socket")
	}
	return &channel{conn: u}, nil
}

// newPair makes a channel and the descriptor of its other end, which an agent inherits.
func newPair() (*channel, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make lab channel: %w", err)
	}
	// Each packet carries the sender's process id as seen from here (SCM_CREDENTIALS), across pid
	// namespaces. This is the only way to learn a host's process id on the machine, which
	// nsenter(1) needs.
	err = unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	other := os.NewFile(uintptr(fds[1]), "lab channel")
	if err == nil {
		var c *channel
		if c, err = newChannel(os.NewFile(uintptr(fds[0]), "lab channel")); err == nil {
			return c, other, nil
		}
	}
	_ = other.Close()
	return nil, nil, err
}

// send sends one packet with copies of the files' descriptors.
func (c *channel) send(v any, files ...*os.File) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxPacket {
		return fmt.Errorf("lab channel: packet of %d bytes, at most %d", len(b), maxPacket)
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = unix.UnixRights(fds...)
	}
	// The reaper and the agent's loop both send.
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _, err = c.conn.WriteMsgUnix(b, oob, nil)
	return err
}

// receive waits for one packet. The caller closes the files.
func (c *channel) receive(v any) (files []*os.File, pid int, err error) {
	buf, oob := make([]byte, maxPacket), make([]byte, 256)
	// Package net passes MSG_CMSG_CLOEXEC on Linux, so the descriptors are never without the flag.
	n, oobn, _, _, err := c.conn.ReadMsgUnix(buf, oob)
	if err != nil {
		return nil, 0, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, 0, fmt.Errorf("lab channel: %w", err)
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			for _, fd := range fds {
				unix.CloseOnExec(fd)
				files = append(files, os.NewFile(uintptr(fd), "passed"))
			}
		} else if cred, err := unix.ParseUnixCredentials(&m); err == nil {
			pid = int(cred.Pid)
		}
	}
	if n == 0 && len(files) == 0 {
		return nil, 0, net.ErrClosed // a packet socket reports its end by an empty packet
	}
	if err := json.Unmarshal(buf[:n], v); err != nil {
		closeAll(files)
		return nil, 0, fmt.Errorf("lab channel: %w", err)
	}
	return files, pid, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

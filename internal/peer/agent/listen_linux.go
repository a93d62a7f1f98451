package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/durable"
	"github.com/linerate/linerate/internal/kernel/sys"
)

// ErrInTheWay reports that another file occupies the path of the socket.
var ErrInTheWay = errors.New("is in the way")

// maxSocketPath is what struct sockaddr_un has room for (unix(7)).
const maxSocketPath = 107

// Serve answers until ctx ends, and then returns nil. It creates the socket, and its directory if
// it does not exist, and calls ready with the path once the socket accepts connections. If systemd
// passes a socket (LISTEN_FDS), it creates nothing. A second server at the same path gets
// durable.ErrLocked.
func Serve(ctx context.Context, c Config, ready func(socket string)) error {
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	group, err := groupID(c.Group)
	if err != nil {
		return err
	}
	listener, err := handedOver()
	if err != nil {
		return err
	}
	if listener == nil {
		release, made, err := listen(c.Socket, group)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", c.Socket, err)
		}
		defer release()
		listener = made
	}
	s := newServer(c, listener, identify, uint32(os.Geteuid()), group)
	if ready != nil {
		ready(listener.Addr().String())
	}
	return s.serve(ctx)
}

// groupID returns the number of a group; -1 if no group is configured.
func groupID(name string) (int64, error) {
	if name == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int64(n), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, &GroupError{Group: name, Err: err}
	}
	n, err := strconv.ParseUint(g.Gid, 10, 31)
	if err != nil {
		return 0, &GroupError{Group: name, Err: err}
	}
	return int64(n), nil
}

// handedOver returns the socket that systemd has opened for this process; nil if it has not.
func handedOver() (net.Listener, error) {
	f, err := sys.InheritedSocket()
	if f == nil {
		return nil, err
	}
	defer f.Close() // the listener has a duplicate
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("take over the socket of systemd: %w", err)
	}
	if _, ok := l.(*net.UnixListener); !ok {
		_ = l.Close()
		return nil, fmt.Errorf("take over the socket of systemd: %s is not a Unix socket", l.Addr())
	}
	return l, nil
}

// listen creates the socket. The socket accepts connections only once it has its owner and mode.
func listen(path string, group int64) (release func(), _ net.Listener, err error) {
	if len(path) > maxSocketPath {
		return nil, nil, fmt.Errorf("name of %d bytes: a Unix socket's has at most %d", len(path), maxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := safeDirectory(dir); err != nil {
		return nil, nil, err
	}
	// Two servers that find the same dead socket must not both replace it. The lock ends with the
	// process that holds it.
	lock, err := durable.OS().Lock(path + ".lock")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close() // the error above is the one to return
		}
	}()
	if err := removeDead(path); err != nil {
		return nil, nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // the listener has a duplicate
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, nil, fmt.Errorf("bind: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(path)
		}
	}()
	// Independent of the umask: no process can connect before listen(2) below.
	mode := os.FileMode(0o600)
	if group >= 0 {
		if err := os.Lchown(path, -1, int(group)); err != nil {
			return nil, nil, err
		}
		mode = 0o660
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, nil, err
	}
	if err := unix.Listen(fd, maxConnections); err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	listener, err := net.FileListener(f)
	if err != nil {
		return nil, nil, err
	}
	return func() {
		_ = os.Remove(path) // this process holds the lock, so the path is its own; the next server removes a dead one
		_ = lock.Close()
	}, listener, nil
}

// safeDirectory creates a directory for the socket, or checks that only root can write to an
// existing one.
func safeDirectory(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s %w: not a directory", dir, ErrInTheWay)
	}
	if uid, _, known := durable.Owner(info); !known || uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("directory %s: belongs to user %d, who could replace the socket: %w", dir,
			uid, fs.ErrPermission)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("directory %s: other users can write to it (mode %04o) and could replace the socket: %w", dir,
			info.Mode().Perm(), fs.ErrPermission)
	}
	return nil
}

// removeDead removes a socket that no process listens on.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s %w: not a socket", path, ErrInTheWay)
	}
	conn, err := net.DialTimeout("unix", path, readWithin)
	if err == nil {
		_ = conn.Close() // nothing was sent
		return fmt.Errorf("%s %w: another process answers there", path, ErrInTheWay)
	}
	// Only this error proves that no process listens. A full queue, for example, means a busy
	// server.
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("%s %w: %w", path, ErrInTheWay, err)
	}
	return os.Remove(path)
}

// identify returns the user and the groups of a connected process, as the kernel reports them.
func identify(conn net.Conn) (peer, error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return peer{}, fmt.Errorf("peer of %s: %w", conn.LocalAddr(), errors.ErrUnsupported)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("read credentials of a peer: %w", err)
	}
	var who peer
	var askErr error
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			askErr = err
			return
		}
		who.uid = cred.Uid
		// A kernel before 4.13 reports only the primary group.
		more, err := sys.PeerGroups(int(fd))
		if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			askErr = err
			return
		}
		who.groups = append([]uint32{cred.Gid}, more...)
	})
	if err := errors.Join(err, askErr); err != nil {
		return peer{}, fmt.Errorf("read credentials of a peer: %w", err)
	}
	return who, nil
}

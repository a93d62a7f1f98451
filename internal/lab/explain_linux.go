package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// explain adds to an error of making namespaces what forbids them and the remedy, in one sentence.
// root is the root of the file system. Unrelated errors are returned unchanged.
func explain(err error, root string) error {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	// The kernel returns EPERM, ENOSPC or EINVAL for half a dozen reasons. Settings that every user
	// can read show which one applies.
	sysctl := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, "proc/sys", name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	what := ""
	switch {
	case errors.Is(err, unix.EINVAL): // a kernel built without CONFIG_USER_NS, or without another kind
		what = "this kernel lacks a kind of namespace; run on a kernel with user, network, pid and mount namespaces"
	case sysctl("user/max_user_namespaces") == "0":
		what = "this machine allows no user namespaces; run as root, or set sysctl user.max_user_namespaces=15000"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		what = "only root may make namespaces here; run as root, or set sysctl kernel.unprivileged_userns_clone=1"
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1":
		what = "AppArmor removes the rights of user namespaces here; run as root, " +
			"or set sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	case errors.Is(err, unix.ENOSPC):
		what = "too many namespaces are in use; raise sysctl user.max_user_namespaces, " +
			"user.max_net_namespaces or user.max_pid_namespaces"
	default:
		what = "a container or security policy forbids namespaces here; run as root on the machine itself, " +
			"or give the container the SYS_ADMIN and NET_ADMIN capabilities"
	}
	return fmt.Errorf("%w: %s (%w)", ErrNoNamespaces, what, err)
}

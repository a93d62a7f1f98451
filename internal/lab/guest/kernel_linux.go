package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/base/scratch"
)

// metapackage depends on Debian's current kernel for this architecture.
const metapackage = "linux-image-amd64"

// kept lists the directories of modules, and single modules, that the cache keeps: those that a
// guest for networks can use, a quarter of all.
var kept = []string{
	"arch", "crypto", "lib", "net", "drivers/char", "drivers/net", "drivers/pps", "drivers/ptp", "drivers/usb/common",
	"drivers/usb/core",
	"drivers/usb/host", "drivers/virtio", "drivers/block/virtio_blk", "fs/ext4", "fs/jbd2", "fs/mbcache", "fs/9p",
	"fs/netfs", "fs/nfs", "fs/nfs_common",
	"fs/nfsd", "fs/lockd", "fs/fscache",
	"block", "drivers/block/null_blk", "drivers/md/dm-mod", "drivers/scsi/scsi_common", "drivers/scsi/scsi_mod",
	"drivers/scsi/sd_mod", "drivers/scsi/virtio_scsi", "drivers/usb/storage/usb-storage", "fs/configfs",
}

// tooMuch lists large directories below those of kept that no guest uses.
var tooMuch = []string{"drivers/net/wireless", "net/wireless", "net/mac80211", "net/bluetooth"}

// contents is the version of the lists above: a kernel unpacked with another version lacks modules.
const contents = "_3"

// kernel is one unpacked kernel in the cache.
type kernel struct {
	dir     string
	image   string          // for QEMU's -kernel
	builtin map[string]bool // modules that are part of the image
}

func (k kernel) module(name string) string { return filepath.Join(k.dir, "modules", name+".ko") }

// depends implements the dependencies for loadOrder.
func (k kernel) depends(name string) (needs []string, builtin bool, err error) {
	f, err := os.Open(k.module(name))
	if errors.Is(err, fs.ErrNotExist) && k.builtin[name] {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := readModuleInfo(f)
	return info.depends(), false, err
}

// cacheDirectory returns the directory of kernels: $XDG_CACHE_HOME/linerate/guest.
func cacheDirectory() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "linerate", "guest"), nil
}

// findKernel returns the kernel that apt would install, from the cache or from a Debian mirror. If
// apt knows no kernel, it returns the newest in the cache.
func findKernel(ctx context.Context) (kernel, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return kernel{}, fmt.Errorf("kernel for %s on %s: %w", runtime.GOARCH, runtime.GOOS, errors.ErrUnsupported)
	}
	cache, err := cacheDirectory()
	if err != nil {
		return kernel{}, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return kernel{}, err
	}
	// Test packages run at the same time, and only one of them needs to download.
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return kernel{}, err
	}
	defer unlock()
	name, version, err := offered(ctx)
	if err != nil {
		if old, cacheErr := newestIn(cache); cacheErr == nil {
			return openKernel(ctx, old)
		}
		return kernel{}, err
	}
	dir := filepath.Join(cache, name+"_"+strings.ReplaceAll(version, ":", "%3a")+contents)
	if _, err := os.Stat(dir); err == nil {
		return openKernel(ctx, dir)
	}
	if err := fetch(ctx, cache, name, version, dir); err != nil {
		// Without a mirror an older kernel will do.
		if old, cacheErr := newestIn(cache); cacheErr == nil {
			return openKernel(ctx, old)
		}
		return kernel{}, err
	}
	return openKernel(ctx, dir)
}

// lock waits for an advisory lock on a file. The lock ends with the process.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func openKernel(ctx context.Context, dir string) (kernel, error) {
	b, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return kernel{}, err
	}
	image, err := unpackImage(ctx, dir)
	if err != nil {
		return kernel{}, err
	}
	k := kernel{dir: dir, image: image, builtin: make(map[string]bool)}
	for line := range strings.Lines(string(b)) {
		k.builtin[moduleName(strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	return k, nil
}

// newestIn returns the kernel that was unpacked last.
func newestIn(cache string) (dir string, err error) {
	dirs, err := filepath.Glob(filepath.Join(cache, "linux-image-*_*"+contents))
	if err != nil || len(dirs) == 0 {
		return "", fmt.Errorf("no kernel in %s: %w", cache, fs.ErrNotExist)
	}
	age := func(dir string) int64 {
		info, err := os.Stat(dir)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	return slices.MaxFunc(dirs, func(a, b string) int { return int(age(a)/1e6 - age(b)/1e6) }), nil
}

// offered asks apt which package the metapackage depends on, without the network.
func offered(ctx context.Context) (name, version string, err error) {
	out, err := output(ctx, "", "apt-cache", "show", "--no-all-versions", metapackage)
	if err != nil {
		return "", "", fmt.Errorf("%w (apt knows no %s: run apt-get update on a Debian machine)", err, metapackage)
	}
	if name, version = parseOffer(out); name == "" {
		return "", "", fmt.Errorf("apt-cache show %s: its dependencies name no kernel", metapackage)
	}
	return name, version, nil
}

// parseOffer finds "linux-image-6.1.0-56-amd64 (= 6.1.192-2)" among the dependencies. The unsigned
// and the plain package hold the same kernel.
func parseOffer(text string) (name, version string) {
	for line := range strings.Lines(text) {
		list, ok := strings.CutPrefix(line, "Depends: ")
		if !ok {
			continue
		}
		for entry := range strings.SplitSeq(list, ",") {
			entry, _, _ = strings.Cut(entry, "|")
			n, rest, _ := strings.Cut(strings.TrimSpace(entry), " ")
			v, exact := strings.CutPrefix(strings.TrimSpace(rest), "(= ")
			if strings.HasPrefix(n, "linux-image-") && exact {
				return n, strings.TrimSuffix(strings.TrimSpace(v), ")")
			}
		}
	}
	return "", ""
}

// fetch downloads a package and unpacks the files that guests need into a directory, which appears
// only when it is complete. apt-get checks the signature of the archive and the hash of the file.
func fetch(ctx context.Context, cache, name, version, dir string) (err error) {
	own, err := scratch.In(cache, "unpack")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	work := own.Path
	// apt's sandbox user cannot enter a cache directory of root.
	if _, err := output(ctx, work, "apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
		name+"="+version); err != nil {
		return fmt.Errorf("%w (a guest needs the kernel of a Debian mirror once: "+
			"check the network, and run apt-get update)", err)
	}
	packages, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("apt-get download %s: %d packages, want 1: %w", name, len(packages),
			errors.Join(err, fs.ErrNotExist))
	}
	tree := filepath.Join(work, "tree")
	if err := os.MkdirAll(filepath.Join(tree, "modules"), 0o755); err != nil {
		return err
	}
	if err := unpack(ctx, packages[0], tree); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(packages[0]), err)
	}
	return os.Rename(tree, dir)
}

// unpack unpacks a package as a stream.
func unpack(ctx context.Context, deb, dir string) (err error) {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	found, err := unpackTar(ctx, tar.NewReader(out), dir)
	_, drained := io.Copy(io.Discard, out) // the padding at the end, or the writer would get a broken pipe
	if ended := cmd.Wait(); ended != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", ended, bytes.TrimSpace(stderr.Bytes()))
	}
	switch err := errors.Join(err, drained); {
	case err != nil:
		return err
	case !found:
		return errors.New("no kernel in it")
	}
	return nil
}

// unpackTar keeps the kernel's image, the list of built-in modules, and modules. found reports
// whether the archive has an image.
func unpackTar(ctx context.Context, archive *tar.Reader, dir string) (found bool, err error) {
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		to, compressed := place(h.Name)
		if to == "" {
			continue
		}
		b, err := io.ReadAll(archive)
		if err == nil && compressed {
			b, err = uncompressed(ctx, b)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o644)
		}
		if err != nil {
			return found, fmt.Errorf("%s: %w", h.Name, err)
		}
		found = found || to == "vmlinuz"
	}
}

// place returns where a file of the package goes, or "" if guests do not need it, and whether to
// decompress it: Debian's modules are plain files up to version 12 and xz files from 13 on.
func place(name string) (to string, compressed bool) {
	name = strings.TrimPrefix(name, "./")
	if strings.HasPrefix(name, "boot/vmlinuz-") {
		return "vmlinuz", false
	}
	// lib/modules/RELEASE/…, with usr/ before it from Debian 13 on.
	rest, ok := strings.CutPrefix(strings.TrimPrefix(name, "usr/"), "lib/modules/")
	if !ok {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, "/")
	if rest == "modules.builtin" {
		return rest, false
	}
	rest, ok = strings.CutPrefix(rest, "kernel/")
	below := func(dir string) bool { return strings.HasPrefix(rest, dir+"/") || strings.HasPrefix(rest, dir+".ko") }
	if !ok || !slices.ContainsFunc(kept, below) || slices.ContainsFunc(tooMuch, below) {
		return "", false
	}
	base, compressed := strings.CutSuffix(path.Base(rest), ".xz")
	base, ok = strings.CutSuffix(base, ".ko")
	if !ok {
		return "", false
	}
	return path.Join("modules", moduleName(base)+".ko"), compressed
}

func uncompressed(ctx context.Context, b []byte, options ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "xz", append([]string{"-dc"}, options...)...)
	cmd.Stdin = bytes.NewReader(b)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("xz: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// output runs a program of Debian. The error quotes its last line, in which such programs explain
// their failure.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, lines[len(lines)-1])
	}
	return string(out), nil
}

package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/linerate/linerate/internal/base/scratch"
)

//go:embed disk.sh
var diskScript string

// Disk is a disk with a Debian. Guests boot from it one after another, and each finds what the
// previous one left.
type Disk struct {
	own        *scratch.Directory
	dir, image string
}

// NewDisk makes a disk with a Debian: the packages that apt would install on an empty machine,
// unpacked, without running their maintainer scripts. The cache keeps the image beside the kernel
// until the packages or the kernel change; each Disk is a copy. The error is fs.ErrNotExist if a
// tool or a mirror is missing.
func NewDisk(ctx context.Context, s System) (d *Disk, err error) {
	image, err := findImage(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	d = &Disk{}
	if d.own, err = scratch.New("disk"); err != nil {
		return nil, fmt.Errorf("make disk: %w", err)
	}
	d.dir = d.own.Path
	d.image = filepath.Join(d.dir, "disk")
	if _, err := output(ctx, "", "cp", "--sparse=always", "--reflink=auto", image, d.image); err != nil {
		return nil, errors.Join(fmt.Errorf("make disk: %w", err), d.Close())
	}
	return d, nil
}

// Name returns the name of the file with the disk.
func (d *Disk) Name() string { return d.image }

// Close removes the disk. No guest may use it any more.
func (d *Disk) Close() error { return d.own.Close() }

// findImage returns the image from the cache, or makes it.
func findImage(ctx context.Context, s System) (image string, err error) {
	k, err := findKernel(ctx)
	if err != nil {
		return "", err
	}
	cache, err := cacheDirectory()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	own, err := scratch.In(cache, "unpack")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	work := own.Path
	packages, err := closure(ctx, work, s.Packages)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(fmt.Sprint(diskScript, filepath.Base(k.dir), packages, s.Modules, s.Enable)))
	image = filepath.Join(cache, "disk_"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(image); !errors.Is(err, fs.ErrNotExist) {
		return image, err
	}
	made := filepath.Join(work, "disk")
	if err := makeImage(ctx, work, made, k, s); err != nil {
		return "", err
	}
	// No caller asks for older images again: a release only ever replaces packages.
	old, err := filepath.Glob(filepath.Join(cache, "disk_*"))
	if err != nil {
		return "", err
	}
	for _, o := range old {
		if err := os.Remove(o); err != nil {
			return "", err
		}
	}
	return image, os.Rename(made, image)
}

// aptOptions make apt-get plan for an empty machine and keep its downloads in a directory.
func aptOptions(work string) []string {
	return []string{"-q", "-y", "-o", "Dir::State::status=" + filepath.Join(work, "status"), "-o",
		"Dir::Cache::archives=" + filepath.Join(work, "archives"),
		"-o", "APT::Sandbox::User=root", "-o", "APT::Install-Recommends=false", "-o", "Debug::NoLocking=true"}
}

// closure asks apt for the packages that an installation needs, with their versions, without the
// network.
func closure(ctx context.Context, work string, packages []string) (list string, err error) {
	if err := errors.Join(os.WriteFile(filepath.Join(work, "status"), nil, 0o644),
		os.MkdirAll(filepath.Join(work, "archives", "partial"), 0o755)); err != nil {
		return "", err
	}
	out, err := output(ctx, work, "apt-get",
		append(append(aptOptions(work), "--print-uris", "install"), packages...)...)
	if err != nil {
		return "", fmt.Errorf("%w (is the list of packages fresh? apt-get update)", err)
	}
	var names strings.Builder
	for line := range strings.Lines(out) {
		// 'URI' name_version_architecture.deb size checksum
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(line, "'") {
			names.WriteString(fields[1] + " ")
		}
	}
	if names.Len() == 0 {
		return "", fmt.Errorf("apt-get install %s: no package: %w", strings.Join(packages, " "), fs.ErrNotExist)
	}
	return names.String(), nil
}

// makeImage downloads the packages and makes the image. Files belong to root, which in an ordinary
// user's namespace is that user.
func makeImage(ctx context.Context, work, image string, k kernel, s System) error {
	if _, err := output(ctx, work, "apt-get", append(append(aptOptions(work), "--download-only", "install"),
		s.Packages...)...); err != nil {
		return fmt.Errorf("%w (the packages of a Debian mirror are needed once)", err)
	}
	order, err := loadOrder(s.Modules, k.depends)
	if err != nil {
		return err
	}
	modules := filepath.Join(work, "modules")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		return err
	}
	for _, name := range order {
		if err := copyFile(k.module(name), filepath.Join(modules, name+".ko"), 0o644); err != nil {
			return err
		}
	}
	if err := copyFile(filepath.Join(k.dir, "modules.builtin"), filepath.Join(work, "modules.builtin"),
		0o644); err != nil {
		return err
	}
	release := strings.TrimPrefix(filepath.Base(k.dir), "linux-image-")
	release, _, _ = strings.Cut(release, "_")
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", diskScript, "sh", image, release}, s.Enable...)...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PATH="+os.Getenv("PATH")+":"+searchPath)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		ownUser(cmd.SysProcAttr)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make the image: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

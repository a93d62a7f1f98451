package kmod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/linerate/linerate/internal/kernel/tool"
)

// compressedFile is MODULE_INIT_COMPRESSED_FILE (linux/module.h, 5.17).
const compressedFile = 4

// Tree is a directory like /lib/modules/RELEASE.
type Tree string

// Running returns the tree of the running kernel.
func Running() (Tree, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("release of the kernel: %w", err)
	}
	return Tree("/lib/modules/" + unix.ByteSliceToString(name.Release[:])), nil
}

// file returns the file of a module and those of the modules that it needs, in the order in which
// to load them. A module that is not in modules.dep is fs.ErrNotExist.
func (t Tree) file(name string) (file string, needs []string, err error) {
	list, err := os.ReadFile(filepath.Join(string(t), "modules.dep"))
	if err != nil {
		return "", nil, err
	}
	for line := range strings.Lines(string(list)) {
		file, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || nameOf(file) != name {
			continue
		}
		for _, need := range strings.Fields(rest) {
			needs = append(needs, t.at(need))
		}
		slices.Reverse(needs) // the file lists those first that need the others
		return t.at(file), needs, nil
	}
	return "", nil, fmt.Errorf("module %s in %s: %w", name, t, fs.ErrNotExist)
}

// at returns the path of an entry of modules.dep, which is relative unless depmod was run with an
// option that makes it absolute.
func (t Tree) at(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(string(t), file)
}

// nameOf returns the kernel's name of the module in a file: snd-hda.ko.xz is snd_hda.
func nameOf(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// Loaded reports whether the kernel has a module, loaded or built in.
func Loaded(name string) bool {
	_, err := os.Stat("/sys/module/" + name)
	return err == nil
}

// Ready reports why a module that is loaded could not be unloaded and loaded again; nil if nothing
// is known to be in the way.
func (t Tree) Ready(name string) error {
	if _, err := os.Stat("/sys/module/" + name + "/initstate"); err != nil {
		return fmt.Errorf("%s is not a loaded module: %w", name, fs.ErrNotExist)
	}
	if b, err := os.ReadFile("/proc/sys/kernel/modules_disabled"); err == nil && strings.TrimSpace(string(b)) == "1" {
		return fmt.Errorf("%w: kernel.modules_disabled is 1 until the host restarts", fs.ErrPermission)
	}
	// The kernel asks for the capability before it looks at the descriptor.
	if err := unix.FinitModule(-1, "", 0); errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load modules: %w", err)
	}
	holders, err := os.ReadDir("/sys/module/" + name + "/holders")
	if err == nil && len(holders) > 0 {
		return fmt.Errorf("%w: %s uses it", unix.EBUSY, holders[0].Name())
	}
	if b, err := os.ReadFile("/sys/module/" + name + "/refcnt"); err == nil && strings.TrimSpace(string(b)) != "0" {
		return fmt.Errorf("%w: its use count is %s", unix.EBUSY, strings.TrimSpace(string(b)))
	}
	file, needs, err := t.file(name)
	if err != nil {
		return err
	}
	for _, f := range append(needs, file) {
		if err := readable(f); err != nil {
			return err
		}
	}
	return nil
}

// readable reports why the kernel could not take a module from a file.
func readable(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if packed(file) == "" || unpacks(file) {
		return nil
	}
	if !slices.ContainsFunc(insmods(), func(program string) bool { _, err := os.Stat(program); return err == nil }) {
		return fmt.Errorf("%s: %w by this kernel, and insmod(8) is not installed", file, errors.ErrUnsupported)
	}
	return nil
}

func insmods() []string { return []string{"/sbin/insmod", "/usr/sbin/insmod"} }

// packed returns how a module is compressed, by its name: xz, zst, gz, or not at all.
func packed(file string) string {
	ending := strings.TrimPrefix(filepath.Ext(file), ".")
	if ending == "ko" {
		return ""
	}
	return ending
}

// unpacks reports whether the kernel itself decompresses such a file.
func unpacks(file string) bool {
	b, err := os.ReadFile("/sys/module/compression")
	kind := map[string]string{"xz": "xz", "zst": "zstd", "gz": "gzip"}[packed(file)]
	return err == nil && kind != "" && bytes.Contains(b, []byte(kind))
}

// Load loads a module with parameters, and before it what it needs. A module that is loaded already
// is an error (EEXIST).
func (t Tree) Load(ctx context.Context, name, parameters string) error {
	file, needs, err := t.file(name)
	if err != nil {
		return err
	}
	for _, need := range needs {
		if Loaded(nameOf(need)) {
			continue
		}
		if err := load(ctx, need, ""); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return load(ctx, file, parameters)
}

func load(ctx context.Context, file, parameters string) error {
	if packed(file) != "" && !unpacks(file) {
		words := append([]string{file}, strings.Fields(parameters)...)
		if _, err := (tool.System{}).Run(ctx, "insmod", words...); err != nil {
			return fmt.Errorf("load %s: %w", file, err)
		}
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if packed(file) != "" {
		flags = compressedFile
	}
	if err := unix.FinitModule(int(f.Fd()), parameters, flags); err != nil {
		return fmt.Errorf("load %s: %w", file, err)
	}
	return nil
}

// Unload removes a module that nothing uses, with all that it drives. It returns when the kernel
// has let go of its devices.
func Unload(name string) error {
	if err := unix.DeleteModule(name, unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("unload %s: %w", name, err)
	}
	return nil
}

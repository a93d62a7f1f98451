package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// allTargets are the systems that `make cross` builds, and the first system.
const allTargets = "linux/amd64,linux/arm64,freebsd/amd64,illumos/amd64,solaris/amd64,windows/amd64"

func main() {
	var r release
	var targets, key, only string
	flag.StringVar(&r.tree, "tree", "../..", "the repository to release")
	flag.StringVar(&r.out, "out", "../../bin/release", "directory of the files")
	flag.StringVar(&targets, "targets", allTargets, "systems, as GOOS/GOARCH")
	flag.StringVar(&only, "program", "", "make packages and images of this program alone, without archives; for tests")
	flag.StringVar(&key, "key", "", "secret key of minisign that signs the checksums, outside the tree; "+
		"its password is in LINERATE_SIGN_PASSWORD")
	flag.Parse()
	r.targets = strings.Split(targets, ",")
	for _, p := range programs {
		if only == "" || only == p.name {
			r.programs = append(r.programs, p)
		}
	}
	if len(r.programs) == 0 {
		fmt.Fprintf(os.Stderr, "release: -program %s: linerate or linerate-hub\n", only)
		os.Exit(2)
	}
	if err := run(&r, key); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(r *release, key string) error {
	var err error
	if r.tree, err = filepath.Abs(r.tree); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if key != "" {
		if key, err = outside(key, r.tree); err != nil {
			return err
		}
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	r.work = filepath.Join(r.out, "work")
	if err := os.MkdirAll(r.work, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	steps := []func() error{r.build, r.manual, r.packages, r.images, r.materials}
	if len(r.programs) == len(programs) { // an archive, and what points to it, has both
		steps = append(steps, r.archives, r.formula, r.flake)
	}
	for _, step := range append(steps, r.checksums) {
		if err := step(); err != nil {
			return err
		}
	}
	if key == "" {
		fmt.Fprintln(os.Stderr, "release: not signed: -key FILE names the secret key")
		return nil
	}
	return r.sign(key)
}

// outside returns the real path of a key, and refuses one that a commit could take along.
func outside(key, tree string) (string, error) {
	key, err := filepath.Abs(key)
	if err == nil {
		key, err = filepath.EvalSymlinks(key)
	}
	if err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(tree)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(key, root+string(filepath.Separator)) {
		return "", fmt.Errorf("key %s: is within the tree; keep it elsewhere", key)
	}
	return key, nil
}

// files returns the sorted names of the files of a release, without directories.
func (r *release) files() ([]string, error) {
	entries, err := os.ReadDir(r.out)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != sums && e.Name() != sums+".minisig" {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if err == nil && len(names) == 0 {
		err = errors.New("nothing was made")
	}
	return names, err
}

package main

import (
	_ "embed" // for the scripts
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // each format registers itself
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// The scripts are the same for all formats; each asks its arguments which format called it.
var (
	//go:embed scripts/postinstall.sh
	postInstall string
	//go:embed scripts/preremove.sh
	preRemove string
	//go:embed scripts/postremove.sh
	postRemove string
)

// packages makes a .deb, .rpm and .apk of each program for each Linux.
func (r *release) packages() error {
	for _, p := range r.programs {
		shared, err := r.shared(p.name)
		if err != nil {
			return err
		}
		for _, target := range r.targets {
			arch, linux := strings.CutPrefix(target, "linux/")
			if !linux {
				continue
			}
			program, err := r.binary(target, p.name)
			if err != nil {
				return err
			}
			for _, format := range []string{"deb", "rpm", "apk"} {
				if err := r.pack(format, arch, p.name, p.about, append(slices.Clone(shared), program)); err != nil {
					return fmt.Errorf("pack %s for %s: %w", p.name, format, err)
				}
			}
		}
	}
	return nil
}

// pack makes one package.
func (r *release) pack(format, arch, name, about string, items []item) error {
	root := filepath.Join(r.work, "package", format+arch, name)
	info := nfpm.Info{
		Name: name, Arch: arch, Platform: "linux", Version: r.version(format), VersionSchema: "none", Release: "1",
		Section: "net", Priority: "optional", Maintainer: "The linerate authors <linerate@users.noreply.github.com>",
		Description: about, Vendor: "linerate", Homepage: project, License: "Apache-2.0", MTime: r.date,
		DisableGlobbing: true,
	}
	if format == "apk" {
		info.Release = "0"
	}
	var units []string
	for _, i := range items {
		if strings.HasPrefix(i.path, "/usr/share/man/") {
			var err error
			if i.data, err = squeeze(i.data); err != nil {
				return err
			}
			i.path += ".gz"
		}
		// Debian and Ubuntu keep the completions of zsh that packages bring elsewhere.
		if format == "deb" {
			i.path = strings.Replace(i.path, "/zsh/site-functions/", "/zsh/vendor-completions/", 1)
		}
		if filepath.Dir(i.path) == places["systemd"] {
			units = append(units, filepath.Base(i.path))
		}
		source := filepath.Join(root, i.path)
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(source, i.data, i.mode); err != nil {
			return err
		}
		info.Contents = append(info.Contents, &files.Content{Source: source, Destination: i.path,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: i.mode, MTime: r.date}})
	}
	for _, script := range []struct {
		text string
		into *string
	}{
		{postInstall, &info.Scripts.PostInstall}, {preRemove, &info.Scripts.PreRemove},
		{postRemove, &info.Scripts.PostRemove},
	} {
		text := strings.NewReplacer("@PROGRAM@", name, "@UNITS@", strings.Join(units, " ")).Replace(script.text)
		file := filepath.Join(root, fmt.Sprintf("script%p", script.into))
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			return err
		}
		// An .apk takes the time of a script from its file.
		if err := os.Chtimes(file, r.date, r.date); err != nil {
			return err
		}
		*script.into = file
	}
	// apk calls other scripts for an upgrade than for an installation.
	info.APK.Scripts.PostUpgrade = info.Scripts.PostInstall
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	settled := nfpm.WithDefaults(&info)
	if err := nfpm.PrepareForPackager(settled, format); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(settled)))
	if err != nil {
		return err
	}
	if err := packager.Package(settled, f); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	return f.Close()
}

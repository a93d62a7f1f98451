package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"aead.dev/minisign"
)

// sums is the name of the file with the checksums.
const sums = "SHA256SUMS"

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// component is one part of a program in a CycloneDX bill of materials.
type component struct {
	Type       string              `json:"type"`
	Ref        string              `json:"bom-ref"`
	Name       string              `json:"name"`
	Version    string              `json:"version,omitempty"`
	Purl       string              `json:"purl,omitempty"`
	Hashes     []map[string]string `json:"hashes,omitempty"`
	Properties []map[string]string `json:"properties,omitempty"`
}

// module returns the component of a Go module. Its h1 sum is of the module's tree, not of a file,
// and therefore a property.
func module(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, Purl: "pkg:golang/" + m.Path + "@" + m.Version}
	c.Ref = c.Purl
	if m.Sum != "" {
		c.Properties = []map[string]string{{"name": "go:sum", "value": m.Sum}}
	}
	return c
}

// materials writes a CycloneDX bill of materials for each program and target, from what the linker
// wrote into the program, which is what `go version -m` prints.
func (r *release) materials() error {
	for _, target := range r.targets {
		for _, p := range r.programs {
			file := r.bin(target, p.name)
			info, err := buildinfo.ReadFile(file)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			self := component{Type: "application", Ref: p.name, Name: p.name, Version: r.version(""),
				Hashes:     []map[string]string{{"alg": "SHA-256", "content": hex.EncodeToString(sum[:])}},
				Properties: []map[string]string{{"name": "target", "value": target}, {"name": "revision", "value": r.revision}}}
			parts := []component{module(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})}
			for _, m := range info.Deps {
				if m.Replace != nil && strings.HasPrefix(m.Replace.Path, ".") {
					continue // this repository
				}
				parts = append(parts, module(m))
			}
			var refs []string
			for _, c := range parts {
				refs = append(refs, c.Ref)
			}
			name := fmt.Sprintf("%s_%s_%s.cdx.json", p.name, r.version(""), strings.ReplaceAll(target, "/", "_"))
			if err := r.write(name, map[string]any{
				"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
				"metadata":     map[string]any{"timestamp": r.date.Format(time.RFC3339), "component": self},
				"components":   parts,
				"dependencies": []map[string]any{{"ref": p.name, "dependsOn": refs}},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// sum returns the SHA-256 of a file of the release, in hexadecimal.
func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// linuxSums returns the checksums of the archives for Linux by architecture.
func (r *release) linuxSums() (map[string]string, error) {
	found := make(map[string]string)
	for _, target := range r.targets {
		if arch, linux := strings.CutPrefix(target, "linux/"); linux {
			sum, err := r.sum(r.archiveName(target))
			if err != nil {
				return nil, err
			}
			found[arch] = sum
		}
	}
	return found, nil
}

// address is where an archive can be downloaded. In an address + means +, and not a blank.
func (r *release) address(target string) string {
	return project + "/releases/download/v" + r.version("") + "/" + r.archiveName(target)
}

// formula writes the formula of Homebrew on Linux.
func (r *release) formula() error {
	found, err := r.linuxSums()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "class Linerate < Formula\n  desc %q\n  homepage %q\n  version %q\n  license \"Apache-2.0\"\n\n"+
		"  depends_on :linux\n\n  on_linux do\n", programs[0].about, project, r.version(""))
	for _, arch := range sortedKeys(found) {
		fmt.Fprintf(&b, "    on_%s do\n      url %q\n      sha256 %q\n    end\n",
			map[string]string{"amd64": "intel", "arm64": "arm"}[arch], r.address("linux/"+arch), found[arch])
	}
	b.WriteString(`  end

  def install
    bin.install "linerate", "linerate-hub"
    man1.install Dir["man/*.1"]
    man7.install Dir["man/*.7"]
    bash_completion.install Dir["completions/bash/*"]
    zsh_completion.install Dir["completions/zsh/*"]
    fish_completion.install Dir["completions/fish/*"]
  end

  test do
    assert_match version.to_s.split("+").first, shell_output("#{bin}/linerate version")
  end
end
`)
	return os.WriteFile(filepath.Join(r.out, "linerate.rb"), []byte(b.String()), 0o644)
}

// flake writes the flake of Nix: the programs of the archive, which need no library.
func (r *release) flake() error {
	found, err := r.linuxSums()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  description = %q;\n\n  inputs.nixpkgs.url = \"github:NixOS/nixpkgs/nixpkgs-unstable\";\n\n"+
		"  outputs = { self, nixpkgs }:\n    let\n      archives = {\n", programs[0].about)
	for _, arch := range sortedKeys(found) {
		fmt.Fprintf(&b, "        %s = {\n          url = %q;\n          sha256 = %q;\n        };\n",
			map[string]string{"amd64": "x86_64-linux", "arm64": "aarch64-linux"}[arch], r.address("linux/"+arch), found[arch])
	}
	fmt.Fprintf(&b, `      };
    in
    {
      packages = builtins.mapAttrs
        (system: archive:
          let
            pkgs = nixpkgs.legacyPackages.${system};
            linerate = pkgs.stdenvNoCC.mkDerivation {
              pname = "linerate";
              version = %q;
              src = pkgs.fetchurl archive;
              installPhase = ''
                mkdir -p $out/bin $out/share/man/man1 $out/share/man/man7 $out/share/bash-completion/completions
                mkdir -p $out/share/zsh/site-functions $out/share/fish/vendor_completions.d
                cp linerate linerate-hub $out/bin/
                cp man/*.1 $out/share/man/man1/
                cp man/*.7 $out/share/man/man7/
                cp completions/bash/* $out/share/bash-completion/completions/
                cp completions/zsh/* $out/share/zsh/site-functions/
                cp completions/fish/* $out/share/fish/vendor_completions.d/
              '';
              meta.mainProgram = "linerate";
            };
          in
          { inherit linerate; default = linerate; })
        archives;
    };
}
`, r.version(""))
	return os.WriteFile(filepath.Join(r.out, "flake.nix"), []byte(b.String()), 0o644)
}

// checksums writes the checksums of all files, as sha256sum(1) reads them.
func (r *release) checksums() error {
	names, err := r.files()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(r.out, sums), []byte(b.String()), 0o644)
}

// sign signs the checksums as minisign does. The comment has the date of the commit, so that two
// signatures by one key are the same.
func (r *release) sign(key string) error {
	secret, err := minisign.PrivateKeyFromFile(os.Getenv("LINERATE_SIGN_PASSWORD"), key)
	if err != nil {
		return fmt.Errorf("key %s: %w", key, err)
	}
	data, err := os.ReadFile(filepath.Join(r.out, sums))
	if err != nil {
		return err
	}
	trusted := fmt.Sprintf("linerate %s, commit %s of %s", r.version(""), r.revision, r.date.Format(time.RFC3339))
	signature := minisign.SignWithComments(secret, data, trusted, "checksums of linerate "+r.version(""))
	return os.WriteFile(filepath.Join(r.out, sums+".minisig"), signature, 0o644)
}

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// descriptor points to a blob of an image, as in the OCI image specification.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// layout collects the blobs of an image by their path in the layout.
type layout map[string][]byte

// put adds a blob.
func (l layout) put(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	l["blobs/sha256/"+digest] = data
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(data)}
}

func (l layout) putJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.put(mediaType, data), err
}

// ordinary is the user of an image. serve and the hub need no privilege; to change settings of a
// host from a container, ask for it, with --user 0 and the capabilities.
const ordinary = "65532:65532"

// images writes one OCI image layout for each program, with an image for each Linux. An image holds
// the program, a directory for temporary files and one for its state, and nothing else.
func (r *release) images() error {
	for _, p := range r.programs {
		l := layout{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
		var manifests []descriptor
		for _, target := range r.targets {
			arch, linux := strings.CutPrefix(target, "linux/")
			if !linux {
				continue
			}
			d, err := r.image(l, arch, p.name, p.about)
			if err != nil {
				return err
			}
			manifests = append(manifests, d)
		}
		if len(manifests) == 0 {
			continue
		}
		index, err := l.putJSON("application/vnd.oci.image.index.v1+json", map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests,
		})
		if err != nil {
			return err
		}
		tag := strings.ReplaceAll(r.version(""), "+", "-") // a tag has no +
		index.Annotations = map[string]string{"org.opencontainers.image.ref.name": tag}
		if len(manifests) == 1 { // programs of old distributions read no nested index
			annotations := index.Annotations
			index = manifests[0]
			index.Annotations = annotations
		}
		top, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{index}})
		if err != nil {
			return err
		}
		l["index.json"] = top
		var items []item
		for _, name := range sortedKeys(l) {
			items = append(items, item{name, l[name], 0o644})
		}
		data, err := pack(items, r.date)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s_%s_oci.tar", p.name, r.version(""))
		if err := os.WriteFile(filepath.Join(r.out, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// image adds the image of one program for one architecture.
func (r *release) image(l layout, arch, name, about string) (descriptor, error) {
	program, err := r.binary("linux/"+arch, name)
	if err != nil {
		return descriptor{}, err
	}
	// Any user may write the state: an image cannot know the user that runs it.
	state := "/var/lib/" + name
	tree, err := pack([]item{program, {path: "/tmp", mode: fs.ModeDir | 0o777},
		{path: state, mode: fs.ModeDir | 0o777}}, r.date)
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(tree)
	squeezed, err := squeeze(tree)
	if err != nil {
		return descriptor{}, err
	}
	layer := l.put("application/vnd.oci.image.layer.v1.tar+gzip", squeezed)
	labels := map[string]string{
		"org.opencontainers.image.title": name, "org.opencontainers.image.description": about,
		"org.opencontainers.image.version": r.version(""), "org.opencontainers.image.revision": r.revision,
		"org.opencontainers.image.source": project, "org.opencontainers.image.licenses": "Apache-2.0",
	}
	settings := map[string]any{
		"User": ordinary, "Entrypoint": []string{program.path}, "WorkingDir": "/", "Labels": labels,
		"Env": []string{"PATH=/usr/bin", "LINERATE_STATE=/var/lib/linerate"},
	}
	if name == "linerate-hub" {
		settings["Cmd"] = []string{"--data", state}
	}
	config, err := l.putJSON("application/vnd.oci.image.config.v1+json", map[string]any{
		"created": r.date.Format(time.RFC3339), "architecture": arch, "os": "linux", "config": settings,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
		"history": []map[string]any{{"created": r.date.Format(time.RFC3339), "created_by": "linerate release"}},
	})
	if err != nil {
		return descriptor{}, err
	}
	manifest, err := l.putJSON("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []descriptor{layer}, "annotations": labels,
	})
	manifest.Platform = &platform{arch, "linux"}
	return manifest, err
}

// write stores a file of the release, as JSON with indentation.
func (r *release) write(name string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), b.Bytes(), 0o644)
}

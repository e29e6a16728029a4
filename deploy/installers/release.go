package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// program is the name of the program that is installed, and of its files in a release.
const program = "sse-server"

// release is what goreleaser has built.
type release struct {
	version   string // without the v of the tag
	binaries  []binary
	checksums map[string]string // of each archive, by its name
}

// binary is the program for one system, in the words of Go: linux, amd64.
type binary struct{ system, arch, path string }

// archive returns the name of the archive that has the program for a system, as .goreleaser.yaml gives it.
func (r *release) archive(system, arch string) string {
	return fmt.Sprintf("%s_%s_%s_%s.tar.gz", program, r.version, system, arch)
}

// readRelease reads what goreleaser has written into its folder of what it has built.
func readRelease(dist string) (*release, error) {
	var about struct{ Version string }
	if err := readJSON(filepath.Join(dist, "metadata.json"), &about); err != nil {
		return nil, err
	}
	var artifacts []struct {
		Type, Path, Goos, Goarch string
		Extra                    struct{ ID string }
	}
	if err := readJSON(filepath.Join(dist, "artifacts.json"), &artifacts); err != nil {
		return nil, err
	}
	made := &release{version: about.Version, checksums: map[string]string{}}
	for _, a := range artifacts {
		if a.Type == "Binary" && a.Extra.ID == program {
			made.binaries = append(made.binaries, binary{a.Goos, a.Goarch, a.Path})
		}
	}
	if made.version == "" || len(made.binaries) == 0 {
		return nil, fmt.Errorf("%s has version %q and %d programs", dist, made.version, len(made.binaries))
	}
	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		if !found {
			return nil, errors.New("SHA256SUMS: want lines of a checksum, two spaces and a name")
		}
		made.checksums[name] = sum
	}
	return made, nil
}

func readJSON(name string, to any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

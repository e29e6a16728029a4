// Package models has the models that make vectors of texts on this machine: the one in the
// binary, and those that a person has installed in the state directory.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/model2vec"
	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
)

// The names that need no installed model.
const (
	Builtin = "glove-100d" // in the binary
	None    = "none"       // searches are by words alone
)

// chosenFile is the file of the state directory with the name of the model that is used.
const chosenFile = "model"

const maxName = 100

// Model makes vectors of texts. Model returns its name, which has the beginning of a checksum.
type Model interface {
	Model() string
	Batch() int
	Known(text string) float64
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// IsName reports whether a model is named by its name, not by the path of its folder.
func IsName(model string) bool {
	return model != "" && len(model) <= maxName && model != "." && model != ".." && !strings.ContainsAny(model, `/\`)
}

// Chosen returns the name of the model that is used with a state directory.
func Chosen(stateDir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(stateDir, chosenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Builtin, nil
	}
	if err != nil {
		return "", fmt.Errorf("read which model is used: %w", err)
	}
	name := strings.TrimSpace(string(data))
	if !IsName(name) {
		return "", fmt.Errorf("%s names no model; docsearch model use NAME writes it anew",
			filepath.Join(stateDir, chosenFile))
	}
	return name, nil
}

// Open opens a model by its name or the path of its folder; "" is the one that was chosen. It
// returns nil for None.
func Open(stateDir, name string) (_ Model, err error) {
	if name == "" {
		name, err = Chosen(stateDir)
		if err != nil {
			return nil, err
		}
	}
	switch {
	case name == None:
		return nil, nil
	case name == Builtin:
		m, err := static.Default()
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	dir := name
	if IsName(name) {
		dir = folder(stateDir, name)
		if err := settle(stateDir, name); err != nil {
			return nil, err
		}
		if !exists(dir) {
			return nil, fmt.Errorf("the model %q is not installed; docsearch model list shows what there is", name)
		}
	}
	m, err := model2vec.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("the model cannot be read: %w", err)
	}
	return m, nil
}

// Made returns the model with the name that its Model method returns, nil if it is not there.
func Made(stateDir, model string) Model {
	if m, err := static.Default(); err == nil && m.Model() == model {
		return m
	}
	installed, _ := installed(stateDir) // none if they cannot be read
	for _, name := range installed {
		about, err := readAbout(stateDir, name)
		if err != nil || about.Model != model {
			continue
		}
		if m, err := model2vec.Open(folder(stateDir, name)); err == nil && m.Model() == model {
			return m
		}
	}
	return nil
}

// folder returns where a model is installed.
func folder(stateDir, name string) string { return filepath.Join(stateDir, "models", name) }

const (
	aboutFile = "about.json"
	partMark  = ".part" // at the end of the names of folders of models that are not complete
	oldMark   = ".old"  // before it, in that of one that is replaced
	lockMark  = ".lock" // at the end of the names of lock files
)

// about is what is known of an installed model.
type about struct {
	Model  string            `json:"model"` // its name with the beginning of its checksum
	Source string            `json:"source"`
	Commit string            `json:"commit,omitempty"` // that the source has named; a later download is of it
	SHA256 map[string]string `json:"sha256"`           // of its files
}

func readAbout(stateDir, name string) (a about, err error) {
	data, err := os.ReadFile(filepath.Join(folder(stateDir, name), aboutFile))
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a, err
}

// installed returns the names of the installed models.
func installed(stateDir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, "models"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name, isOld := strings.CutSuffix(e.Name(), oldMark+partMark)
		if isOld && e.IsDir() && !exists(folder(stateDir, name)) && settle(stateDir, name) == nil {
			names = append(names, name)
		}
		if e.IsDir() && IsName(e.Name()) && !strings.HasSuffix(e.Name(), partMark) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Use chooses the model of a state directory. It fails if the model cannot be read.
func Use(stateDir, name string) error {
	if !IsName(name) {
		return fmt.Errorf("%q is no name of a model; --model takes the path of a folder", name)
	}
	if _, err := Open(stateDir, name); err != nil {
		return err
	}
	path := filepath.Join(stateDir, chosenFile)
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+partMark, []byte(name+"\n"), 0o600); err != nil {
		return err
	}
	afterStep()
	return os.Rename(path+partMark, path)
}

// Remove removes an installed model, and what was downloaded of it. If it was used, the one in
// the binary is used again, and used is true. It fails while the model is being installed.
func Remove(stateDir, name string) (used bool, err error) {
	if name == Builtin || name == None || !IsName(name) {
		return false, fmt.Errorf("%q is no installed model", name)
	}
	dir := folder(stateDir, name)
	part, old := dir+partMark, dir+oldMark+partMark
	if !exists(dir) && !exists(part) && !exists(old) {
		return false, fmt.Errorf("the model %q is not installed", name)
	}
	unlock, err := lock(stateDir, name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if chosen, err := Chosen(stateDir); err == nil && chosen == name {
		used = true
		if err := os.Remove(filepath.Join(stateDir, chosenFile)); err != nil {
			return false, err
		}
		afterStep()
	}
	// The folder goes in one step: half of a model is none.
	if err := errors.Join(os.RemoveAll(old), os.RemoveAll(part)); err != nil {
		return used, err
	}
	afterStep()
	if err := os.Rename(dir, part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return used, err
	}
	afterStep()
	return used, os.RemoveAll(part)
}

// Entry is a model in a list.
type Entry struct {
	Name  string
	About string // where it is from, and what it is
	State string // in the program, installed, not installed
	InUse bool
}

// List returns the models that there are, and those that can be installed.
func List(stateDir string) ([]Entry, error) {
	chosen, err := Chosen(stateDir)
	if err != nil {
		return nil, err
	}
	names, err := installed(stateDir)
	if err != nil {
		return nil, err
	}
	list := []Entry{{Builtin, "English, 60,000 words", "in the program", chosen == Builtin}}
	for _, known := range Known {
		state := "not installed"
		if slices.Contains(names, known.Name) {
			state = "installed"
		}
		list = append(list, Entry{known.Name, known.About, state, chosen == known.Name})
	}
	for _, name := range names {
		if !slices.ContainsFunc(Known, func(r Remote) bool { return r.Name == name }) {
			list = append(list, Entry{name, "", "installed", chosen == name})
		}
	}
	return append(list, Entry{None, "searches are by words alone", "", chosen == None}), nil
}

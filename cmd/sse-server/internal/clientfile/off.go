package clientfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// switches says which servers of a client are switched off outside of their entries: why, by their names.
type switches map[string]string

// leaveOut takes the servers that are switched off out of those that were found, and returns an error for each.
func (s switches) leaveOut(found []Found) (rest []Found, err error) {
	var wrong []error
	for _, one := range found {
		if why, off := s[one.Name]; off {
			wrong = append(wrong, fmt.Errorf("%s: %s", one.Name, why))
			continue
		}
		rest = append(rest, one)
	}
	return rest, errors.Join(wrong...)
}

// add adds the names of a list, unless they are there.
func (s switches) add(names []string, why string) {
	for _, name := range names {
		if s[name] == "" {
			s[name] = why
		}
	}
}

// offInClaudeCode returns what is switched off in Claude Code: by its command /mcp for a project, which is about the
// servers of every file, and by the answer "no" to whether those of .mcp.json may run. A server of .mcp.json about
// which nobody was asked yet is not off: without a terminal Claude Code starts it.
func offInClaudeCode(home string, here folders) (everywhere, ofMCPJSON switches) {
	everywhere, ofMCPJSON = switches{}, switches{}
	file := filepath.Join(home, ".claude.json")
	for path, project := range projectsIn(plainJSON(file), "projects") {
		if here.index(path) < 0 {
			continue
		}
		var lists struct{ DisabledMcpServers, DisabledMcpjsonServers []string }
		_ = json.Unmarshal(project, &lists) // what is no list switches nothing off
		everywhere.add(lists.DisabledMcpServers, "it is disabled in "+file+" (disabledMcpServers)")
		ofMCPJSON.add(lists.DisabledMcpjsonServers, "it is disabled in "+file+" (disabledMcpjsonServers)")
	}
	settings := []string{filepath.Join(home, ".claude", "settings.json")}
	for _, folder := range here {
		settings = append(settings, filepath.Join(folder.path, ".claude", "settings.json"),
			filepath.Join(folder.path, ".claude", "settings.local.json"))
	}
	for _, file := range settings {
		var lists struct{ DisabledMcpjsonServers []string }
		_ = json.Unmarshal(plainJSON(file), &lists)
		ofMCPJSON.add(lists.DisabledMcpjsonServers, "it is disabled in "+file+" (disabledMcpjsonServers)")
	}
	maps.Copy(ofMCPJSON, everywhere)
	return everywhere, ofMCPJSON
}

// ofGemini returns what is switched off in Gemini CLI among the servers that were found in its file, which has data:
// by its command mcp disable, and by the lists of the file.
func ofGemini(file string, data []byte, found []Found) switches {
	all := switches{}
	var settings struct {
		MCP struct{ Allowed, Excluded []string }
	}
	_ = json.Unmarshal(withoutComments(data), &settings)
	commanded := filepath.Join(filepath.Dir(file), "mcp-server-enablement.json")
	var enablement map[string]struct{ Enabled *bool }
	_ = json.Unmarshal(plainJSON(commanded), &enablement)
	for _, one := range found {
		isNamed := func(name string) bool { return sameForGemini(name) == sameForGemini(one.Name) }
		switch on := enablement[sameForGemini(one.Name)].Enabled; {
		case slices.ContainsFunc(settings.MCP.Excluded, isNamed):
			all[one.Name] = "it is disabled in the file (mcp.excluded)"
		case len(settings.MCP.Allowed) > 0 && !slices.ContainsFunc(settings.MCP.Allowed, isNamed):
			all[one.Name] = "it is not among those that the file allows (mcp.allowed)"
		case on != nil && !*on:
			all[one.Name] = "it is disabled in " + commanded
		}
	}
	return all
}

// sameForGemini returns what Gemini CLI compares of a name.
func sameForGemini(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// plainJSON returns a file of a client without comments; nil if it cannot be read.
func plainJSON(file string) []byte {
	data, err := readFile(file)
	if err != nil {
		return nil
	}
	return withoutComments(data)
}

// withoutComments returns the JSON of a file that may have comments; nil for what is none.
func withoutComments(data []byte) []byte {
	plain, err := hujson.Standardize(data)
	if err != nil {
		return nil
	}
	return plain
}

// projectsIn returns what a file has below key for single projects, by their folders.
func projectsIn(plain []byte, key string) (projects map[string]json.RawMessage) {
	var file map[string]json.RawMessage
	_ = json.Unmarshal(plain, &file)
	_ = json.Unmarshal(file[key], &projects) // none, if it is no object
	return projects
}

// folder is one that may be a project.
type folder struct {
	path string
	info fs.FileInfo
}

// folders are those whose projects count here, the current one first.
type folders []folder

// theseFolders returns the current folder, and those above it up to the root of its git repository: Claude Code
// has called a project by the one and by the other, and who has run it in a folder between has a project of that.
// A folder above the root is another project.
func theseFolders() (all folders) {
	path, err := os.Getwd()
	for err == nil {
		info, failed := os.Stat(path)
		if failed != nil {
			break
		}
		all = append(all, folder{path, info})
		if exists(filepath.Join(path, ".git")) > 0 {
			return all
		}
		parent := filepath.Dir(path)
		if parent == path {
			break
		}
		path = parent
	}
	return all[:min(1, len(all))] // it is in no repository
}

// index returns which of the folders a path is that of; -1 if it is none.
func (f folders) index(path string) int {
	there, err := os.Stat(path)
	if err != nil || !filepath.IsAbs(path) {
		return -1
	}
	return slices.IndexFunc(f, func(one folder) bool { return os.SameFile(one.info, there) })
}

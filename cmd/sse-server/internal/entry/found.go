package entry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// Found is an entry of a client's file: a program or an address.
type Found struct {
	Name, File string

	Command  string            `json:"command" toml:"command"`
	Args     []string          `json:"args" toml:"args"`
	Env      map[string]string `json:"env" toml:"env"`
	Dir      string            `json:"cwd" toml:"cwd"`
	URL      string            `json:"url" toml:"url"`
	HTTPURL  string            `json:"httpUrl" toml:"-"`
	Server   string            `json:"serverUrl" toml:"-"`
	Headers  map[string]string `json:"headers" toml:"http_headers"`
	Disabled bool              `json:"disabled" toml:"-"`
	Enabled  *bool             `json:"enabled" toml:"enabled"`
}

// places are the files in which clients have their servers, of a project and of a user, and the member
// that has them. The first one wins where two have the same name.
var places = []struct{ file, key string }{
	{".mcp.json", "mcpServers"},
	{".cursor/mcp.json", "mcpServers"},
	{".vscode/mcp.json", "servers"},
	{"~/.claude.json", "mcpServers"},
	{"~/.config/Claude/claude_desktop_config.json", "mcpServers"},
	{"~/Library/Application Support/Claude/claude_desktop_config.json", "mcpServers"},
	{"~/AppData/Roaming/Claude/claude_desktop_config.json", "mcpServers"},
	{"~/.cursor/mcp.json", "mcpServers"},
	{"~/.config/Code/User/mcp.json", "servers"},
	{"~/Library/Application Support/Code/User/mcp.json", "servers"},
	{"~/.config/zed/settings.json", "context_servers"},
	{"~/.codex/config.toml", "mcp_servers"},
	{"~/.gemini/settings.json", "mcpServers"},
	{"~/.codeium/windsurf/mcp_config.json", "mcpServers"},
}

// Find returns the servers that the files of clients have, in order, without those that are switched off. A
// file that cannot be read is an error beside the others.
func Find(home string) (all []Found, err error) {
	var wrong []error
	for _, place := range places {
		file := place.file
		if rest, below := strings.CutPrefix(file, "~/"); below {
			file = filepath.Join(home, rest)
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var found map[string]Found
		if err == nil {
			found, err = read(data, place.key)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
		}
		names := make([]string, 0, len(found))
		for name := range found {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			one := found[name]
			one.Name, one.File = name, file
			if one.isOfUse() {
				all = append(all, one)
			}
		}
	}
	return all, errors.Join(wrong...)
}

func (f *Found) isOfUse() bool {
	for _, other := range []string{f.HTTPURL, f.Server} {
		if f.URL == "" {
			f.URL = other
		}
	}
	return !f.Disabled && (f.Enabled == nil || *f.Enabled) && (f.Command != "" || f.URL != "")
}

// read returns the entries of a file by their names. What is no entry is left out: files of clients have
// much else.
func read(data []byte, key string) (map[string]Found, error) {
	if key == "mcp_servers" {
		return readTOML(data)
	}
	data, err := hujson.Standardize(data)
	if err != nil {
		return nil, errors.New("it is no JSON")
	}
	var file, entries map[string]json.RawMessage
	_ = json.Unmarshal(data, &file)
	_ = json.Unmarshal(file[key], &entries)
	all := map[string]Found{}
	for name, raw := range entries {
		var one Found
		if json.Unmarshal(raw, &one) == nil {
			all[name] = one
		}
	}
	return all, nil
}

// readTOML is read of Codex's file.
func readTOML(data []byte) (map[string]Found, error) {
	var file struct {
		Servers map[string]Found `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("it is no TOML: %w", err)
	}
	return file.Servers, nil
}

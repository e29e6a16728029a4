// Package entry writes entries for servers into the configurations of clients, and reads those that are
// there. docs/clients.md shows the same entries.
package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
)

// Server is a server at a URL, as a client is told of it.
type Server struct {
	Name, URL string
	SSE       bool // it is served over HTTP+SSE alone
	Token     bool // it wants a bearer token, for which entries have the word TOKEN
}

func (s Server) kind() string {
	if s.SSE {
		return "sse"
	}
	return "http"
}

// headers returns the headers of an entry.
func (s Server) headers() map[string]string {
	if !s.Token {
		return nil
	}
	return map[string]string{"Authorization": "Bearer TOKEN"}
}

// object makes an entry of names and values, in this order, without those that are empty.
func object(pairs ...any) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i < len(pairs); i += 2 {
		value := pairs[i+1]
		if headers, ok := value.(map[string]string); value == "" || ok && len(headers) == 0 {
			continue
		}
		data, _ := json.Marshal(value) // texts and lists of them
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", pairs[i], data)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Client is a client that takes entries.
type Client struct {
	Name string
	// files are those of its configuration, of the project or below the home directory, which ~ is.
	files []string
	// key is the member of the file that has the entries. Without it the client is told by commands.
	key string
	// entry makes an entry; command makes a command.
	entry   func(Server) json.RawMessage
	command func(Server) string
}

const tokenHeader = ` --header "Authorization: Bearer TOKEN"`

// All are the clients, by name.
var All = []Client{
	{Name: "claude-code", files: []string{".mcp.json"}, key: "mcpServers",
		entry: func(s Server) json.RawMessage {
			return object("type", s.kind(), "url", s.URL, "headers", s.headers())
		},
		command: func(s Server) string {
			return withToken(s, "claude mcp add --transport "+s.kind()+" "+s.Name+" "+s.URL)
		}},
	{Name: "claude-desktop", key: "mcpServers",
		files: []string{"~/Library/Application Support/Claude/claude_desktop_config.json", "~/.config/Claude/claude_desktop_config.json", "~/AppData/Roaming/Claude/claude_desktop_config.json"},
		entry: func(s Server) json.RawMessage {
			args := []string{"stdio", "--url", s.URL}
			if s.Token {
				return object("command", "sse-server", "args", append(args, "--header", "Authorization: Bearer ${TOKEN}"), "env", map[string]string{"TOKEN": "TOKEN"})
			}
			return object("command", "sse-server", "args", args)
		}},
	{Name: "cline", files: []string{"~/.cline/data/settings/cline_mcp_settings.json"}, key: "mcpServers",
		entry: func(s Server) json.RawMessage {
			kind := "streamableHttp"
			if s.SSE {
				kind = "sse"
			}
			return object("type", kind, "url", s.URL, "headers", s.headers())
		}},
	{Name: "codex", files: []string{"~/.codex/config.toml"}, key: "mcp_servers"},
	{Name: "copilot-cli", files: []string{"~/.copilot/mcp-config.json"}, key: "mcpServers",
		entry: func(s Server) json.RawMessage {
			return object("type", s.kind(), "url", s.URL, "headers", s.headers(), "tools", []string{"*"})
		}},
	{Name: "cursor", files: []string{".cursor/mcp.json", "~/.cursor/mcp.json"}, key: "mcpServers", entry: plainEntry},
	{Name: "gemini-cli", files: []string{"~/.gemini/settings.json"}, key: "mcpServers", entry: plainEntry},
	{Name: "inspector", command: func(s Server) string {
		return withToken(s, "npx -y @modelcontextprotocol/inspector@latest --cli "+s.URL+" --transport "+s.kind()+" --method tools/list")
	}},
	{Name: "opencode", files: []string{"opencode.json", "~/.config/opencode/opencode.json"}, key: "mcp",
		entry: func(s Server) json.RawMessage {
			return object("type", "remote", "url", s.URL, "headers", s.headers())
		}},
	{Name: "qwen-code", files: []string{"~/.qwen/settings.json"}, key: "mcpServers",
		entry: func(s Server) json.RawMessage {
			if s.SSE {
				return plainEntry(s)
			}
			return object("httpUrl", s.URL, "headers", s.headers())
		}},
	{Name: "trae", files: []string{".trae/mcp.json"}, key: "mcpServers", entry: plainEntry},
	{Name: "vs-code", files: []string{".vscode/mcp.json"}, key: "servers",
		entry: func(s Server) json.RawMessage {
			return object("type", s.kind(), "url", s.URL, "headers", s.headers())
		}},
	{Name: "windsurf", files: []string{"~/.codeium/windsurf/mcp_config.json"}, key: "mcpServers",
		entry: func(s Server) json.RawMessage { return object("serverUrl", s.URL, "headers", s.headers()) }},
	{Name: "zed", files: []string{"~/.config/zed/settings.json"}, key: "context_servers", entry: plainEntry},
}

func plainEntry(s Server) json.RawMessage { return object("url", s.URL, "headers", s.headers()) }

func withToken(s Server, command string) string {
	if s.Token {
		command += tokenHeader
	}
	return command
}

// Names are those of the clients.
func Names() (names []string) {
	for _, c := range All {
		names = append(names, c.Name)
	}
	return names
}

// Named returns a client by a name that people write: Claude Code, vscode.
func Named(name string) (Client, bool) {
	plain := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
	for _, c := range All {
		if strings.ReplaceAll(c.Name, "-", "") == plain || plain == strings.TrimSuffix(strings.ReplaceAll(c.Name, "-", ""), "cli") {
			return c, true
		}
	}
	return Client{}, false
}

// Text returns what people paste: commands, or a whole configuration with these servers alone.
func (c Client) Text(servers []Server) string {
	var b strings.Builder
	if c.command != nil {
		for _, s := range servers {
			b.WriteString(c.command(s) + "\n")
		}
		return b.String()
	}
	if c.entry == nil {
		return tables(servers)
	}
	data, _, _ := c.add([]byte("{}"), servers) // an empty object takes all
	return string(data)
}

// tables are entries in TOML.
func tables(servers []Server) string {
	var b strings.Builder
	for i, s := range servers {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[mcp_servers.%s]\nurl = %q\n", s.Name, s.URL)
		if s.Token {
			b.WriteString("bearer_token_env_var = \"TOKEN\"\n")
		}
	}
	return b.String()
}

// systems are those that have a folder below the home directory.
var systems = map[string]string{"~/Library/": "darwin", "~/AppData/": "windows"}

// Files returns the files that the client reads, those that are there first. home is the home directory.
func (c Client) Files(home string) (files []string) {
	for _, file := range c.files {
		elsewhere := false
		for folder, system := range systems {
			elsewhere = elsewhere || strings.HasPrefix(file, folder) && system != runtime.GOOS
		}
		if elsewhere {
			continue
		}
		if rest, below := strings.CutPrefix(file, "~/"); below {
			file = filepath.Join(home, rest)
		}
		files = append(files, file)
	}
	slices.SortStableFunc(files, func(a, b string) int { return exists(b) - exists(a) })
	return files
}

func exists(file string) int {
	if _, err := os.Stat(file); err != nil {
		return 0
	}
	return 1
}

// Write adds the entries to a file, which it may make. What else is in the file stays, comments too, and so
// does an entry with the same name, which is an error, unless it had no more than another URL: those it
// returns as replaced.
func (c Client) Write(file string, servers []Server) (replaced []string, err error) {
	if c.key == "" {
		return nil, fmt.Errorf("%s has no file: run the command", c.Name)
	}
	file, info, err := writable(file)
	if err != nil {
		return nil, err
	}
	var data []byte
	if info != nil {
		if data, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	if c.entry == nil {
		data, err = addTables(data, servers)
	} else {
		data, replaced, err = c.add(data, servers)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return replaced, replace(file, info, data)
}

// writable returns the file that is meant, behind links, and what it is; nil if it is not there. It fails
// for what must not be replaced by a file, or not at all.
func writable(file string) (string, fs.FileInfo, error) {
	real, err := filepath.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(file); err == nil {
			return "", nil, fmt.Errorf("%s is a link to a file that is not there: make that, or remove the link", file)
		}
		return file, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular():
		return "", nil, fmt.Errorf("%s is no regular file: name the file of the client", file)
	case info.Mode().Perm()&0o200 == 0:
		return "", nil, fmt.Errorf("%s is read-only: let its owner write it first", file)
	}
	part, err := os.OpenFile(real, os.O_WRONLY, 0)
	if err != nil {
		return "", nil, err
	}
	return real, info, part.Close()
}

// add returns a configuration in JSON with the entries, and the names of those that are replaced.
func (c Client) add(data []byte, servers []Server) (_ []byte, replaced []string, err error) {
	fresh := len(bytes.TrimSpace(data)) == 0 || string(data) == "{}"
	if fresh {
		data = []byte("{}")
	}
	all, err := hujson.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("it is no JSON: %w", err)
	}
	if count(&all, c.key) > 1 {
		return nil, nil, fmt.Errorf("it has %s twice: make one of them", c.key)
	}
	if all.Find("/"+c.key) == nil {
		if err := all.Patch(patch("/"+c.key, json.RawMessage("{}"))); err != nil {
			return nil, nil, fmt.Errorf("it is no JSON object: %w", err)
		}
	}
	for _, s := range servers {
		entry, path := c.entry(s), "/"+c.key+"/"+s.Name
		if count(all.Find("/"+c.key), s.Name) > 1 {
			return nil, nil, fmt.Errorf("it has %s twice: make one of them", s.Name)
		}
		if old := all.Find(path); old != nil {
			plain := old.Clone()
			plain.Standardize()
			differs, more := compare(plain.Pack(), entry)
			if len(more) > 0 {
				return nil, nil, fmt.Errorf("it has a server %s with %s: give another --name, or take that entry out first", s.Name, strings.Join(more, ", "))
			}
			if differs {
				replaced = append(replaced, s.Name)
			}
		}
		if err := all.Patch(patch(path, entry)); err != nil {
			return nil, nil, fmt.Errorf("%s is no object: %w", c.key, err)
		}
	}
	if fresh {
		all.Format()
	}
	return all.Pack(), replaced, nil
}

// count returns how many members of an object have a name.
func count(v *hujson.Value, name string) (n int) {
	if v == nil {
		return 0
	}
	object, _ := v.Value.(*hujson.Object)
	if object == nil {
		return 0
	}
	for _, member := range object.Members {
		if literal, ok := member.Name.Value.(hujson.Literal); ok && literal.String() == name {
			n++
		}
	}
	return n
}

// compare reports whether an entry differs from another in its place, and what would be lost of it: what
// is neither its address nor the same in the other.
func compare(old, other json.RawMessage) (differs bool, lost []string) {
	was, is := map[string]any{}, map[string]any{}
	if json.Unmarshal(old, &was) != nil || json.Unmarshal(other, &is) != nil {
		return true, []string{"what is no entry"}
	}
	for name, value := range was {
		if reflect.DeepEqual(value, is[name]) {
			continue
		}
		args, _ := value.([]any)
		ofOurs := name == "args" && len(args) == 3 && args[0] == "stdio" && args[1] == "--url"
		if !ofOurs && !slices.Contains([]string{"type", "url", "httpUrl", "serverUrl"}, name) {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return !reflect.DeepEqual(was, is), lost
}

// patch is a JSON Patch (RFC 6902). The names have no characters to escape.
func patch(path string, value json.RawMessage) []byte {
	return fmt.Appendf(nil, `[{"op":"add","path":%q,"value":%s}]`, path, value)
}

// addTables returns a configuration in TOML with the entries at its end.
func addTables(data []byte, servers []Server) ([]byte, error) {
	known, err := tablesIn(data)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if _, there := known[s.Name]; there {
			return nil, fmt.Errorf("it has a server %s already: edit it, or give another name", s.Name)
		}
	}
	if len(data) > 0 {
		data = append(bytes.TrimRight(data, "\n"), "\n\n"...)
	}
	data = append(data, tables(servers)...)
	known, err = tablesIn(data)
	for _, s := range servers {
		if err != nil || known[s.Name]["url"] != s.URL {
			return nil, errors.New("it has mcp_servers in a form that takes no tables, such as { } in one line: make it [mcp_servers.NAME], or write the entry by hand")
		}
	}
	return data, nil
}

// tablesIn returns the entries in TOML.
func tablesIn(data []byte) (map[string]map[string]any, error) {
	var file struct {
		Servers map[string]map[string]any `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("it is no TOML: %w", err)
	}
	return file.Servers, nil
}

// replace writes a file in one step, with the owner and the mode of the one that is there; nil if none is.
func replace(file string, old fs.FileInfo, data []byte) error {
	mode := fs.FileMode(0o600)
	if old != nil {
		mode = old.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".sse-server-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // it is gone if all goes well
	_, err = part.Write(data)
	if old != nil {
		err = errors.Join(err, keepOwner(part, old))
	}
	if err := errors.Join(err, part.Chmod(mode), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}

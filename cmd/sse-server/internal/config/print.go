package config

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

const usage = `Usage: sse-server [flags] [-- command args...]
       sse-server stdio [flags] [-- command args...]
       sse-server check [flags] [-- command args...]

Serves an MCP server over HTTP+SSE at /sse and over Streamable HTTP at /mcp. The
server is one of:

  sse-server                                        the built-in demo server
  sse-server -- npx -y @modelcontextprotocol/server-everything
                                                    a command, started once for each client
  sse-server --url https://mcp.example.com/mcp --header 'Authorization: Bearer $${TOKEN}'
                                                    a remote server

"sse-server stdio" serves one agent on stdin and stdout, for clients that only start
programs. "sse-server check" checks the configuration and prints the effective settings.

Every flag but --version and --help can also be set by an environment variable, such as
SSE_SERVER_LOG_LEVEL for --log-level, and all but --config in the file that --config
names, under the name of the flag without the dashes. Flags win over variables, and
variables win over the file. The file can list several servers under the key servers; each is then served at
/NAME/sse and /NAME/mcp. A DURATION needs a unit: 500ms, 15s, 2m, 1h. BYTES may have
one: 1048576, 512KiB, 4MiB, 1GiB.`

// describe returns the help of an option, with its default and what 0 means.
func describe(value *kong.Value) string {
	text := value.Help
	if zero := value.Tag.Get("zero"); zero != "" {
		text += " 0 means " + zero + "."
	}
	if value.HasDefault && !value.IsBool() {
		text += " [default " + value.Default + "]"
	}
	return text
}

// textOf returns the default of an option as a flag takes it, "" if there is none.
func textOf(v reflect.Value) string {
	switch v := reflect.Indirect(v); {
	case !v.IsValid() || v.Kind() == reflect.Slice && v.Len() == 0:
		return ""
	case v.Kind() == reflect.Slice:
		return strings.Join(v.Interface().([]string), ",")
	default:
		if m, ok := v.Interface().(encoding.TextMarshaler); ok {
			text, _ := m.MarshalText() // never fails
			return string(text)
		}
		return fmt.Sprint(v.Interface())
	}
}

// Effective returns the settings as a configuration file that has the same effect, with
// the place of each that was given. What may be secret is not shown: the option is then a
// comment. It leaves out options that the file would be refused for.
func (c *Config) Effective() string {
	var b strings.Builder
	c.print(&b, "")
	if len(c.Servers) > 0 {
		b.WriteString("servers:\n")
	}
	for _, s := range c.Servers {
		fmt.Fprintf(&b, "  %s:\n", s.Name)
		s.print(&b, "    ")
	}
	return b.String()
}

// print writes the options of s that the file may have, and for one of several servers
// only its own.
func (s *Server) print(b *strings.Builder, indent string) {
	if len(s.Command) > 0 {
		fmt.Fprintf(b, "%scommand: %s\n", indent, yamlOf(s.Command))
	}
	for _, flag := range s.flags {
		kind := flag.Tag.Get("for")
		if s.given[flag.Name] == "" && (s.Name != "" || kind != "" && kind != s.Kind()) {
			continue
		}
		if text := s.yaml(flag); text != "" && isKey(flag) {
			b.WriteString(strings.TrimRight(indent+text+"  # "+s.given[flag.Name], " #") + "\n")
		}
	}
}

// yaml returns an option as a line of the file, "" if it is not set.
func (s *Server) yaml(flag *kong.Flag) string {
	v := reflect.Indirect(flag.Target)
	switch {
	case v.Kind() == reflect.Slice && v.Len() == 0 && s.given[flag.Name] != "":
		return flag.Name + ": []"
	case !v.IsValid() || (v.Kind() == reflect.Slice || v.Kind() == reflect.String) && v.Len() == 0:
		return ""
	case flag.Tag.Has("pairs"):
		names := map[string]string{}
		for _, text := range v.Interface().([]string) {
			name, _, _ := strings.Cut(text, flag.Tag.Get("pairs"))
			names[name] = "***"
		}
		return "# " + flag.Name + ": " + yamlOf(names)
	case flag.Name == "url" && s.remote.Place() != s.remote.Address:
		return "# url: " + yamlOf(s.remote.Place())
	}
	return flag.Name + ": " + yamlOf(v.Interface())
}

// plain are texts that YAML takes without quotes as what they are.
var plain = regexp.MustCompile(`^[\w./](?:[\w./+-]|[ :][\w./+-])*$`)

// yamlOf writes a value as YAML, of which JSON is a part.
func yamlOf(value any) string {
	data, _ := json.Marshal(value) // never fails
	if text := strings.Trim(string(data), `"`); plain.MatchString(text) && !strings.EqualFold(text, "null") {
		return text
	}
	return string(data)
}

package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
SSE_SERVER_LOG_LEVEL for --log-level, or in the file that --config names, under the name
of the flag without the dashes. Flags win over variables, and variables win over the
file. The file can list several servers under the key servers; each is then served at
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

// textOf returns a value as a flag takes it, "" for an empty one.
func textOf(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, _ := m.MarshalText() // never fails
		return string(text)
	}
	switch v.Kind() {
	case reflect.Map:
		return ""
	case reflect.Slice:
		var texts []string
		for i := range v.Len() {
			texts = append(texts, textOf(v.Index(i)))
		}
		return strings.Join(texts, ",")
	}
	return fmt.Sprint(v.Interface())
}

// Effective returns the settings as a configuration file that has the same effect, with
// the place of each that was given. What may be secret is not shown: the option is then a
// comment. It leaves out options that the file would be refused for.
func (c *Config) Effective() string {
	var b strings.Builder
	write := func(s *Server, options any, indent string, wanted func(*kong.Flag) bool) {
		if len(s.Command) > 0 {
			fmt.Fprintf(&b, "%scommand: %s\n", indent, yamlList(s.Command))
		}
		_ = eachFlag(options, func(flag *kong.Flag) error {
			if text := s.yaml(flag); text != "" && wanted(flag) && !flag.Tag.Has("only") && flag.Name != "config" {
				b.WriteString(strings.TrimRight(indent+text+"  # "+s.given[flag.Name], " #") + "\n")
			}
			return nil
		})
	}
	write(&c.Server, c, "", func(flag *kong.Flag) bool {
		kind := flag.Tag.Get("for")
		return kind == "" || kind == c.Kind() || c.given[flag.Name] != ""
	})
	if len(c.Servers) > 0 {
		b.WriteString("servers:\n")
	}
	for _, s := range c.Servers {
		fmt.Fprintf(&b, "  %s:\n", s.Name)
		write(s, s, "    ", func(flag *kong.Flag) bool { return s.given[flag.Name] != "" })
	}
	return b.String()
}

// yaml returns an option as a line of the file, "" if it is not set.
func (s *Server) yaml(flag *kong.Flag) string {
	switch v := flag.Target.Interface().(type) {
	case pairs:
		return secretLine(flag.Name, v)
	case headers:
		return secretLine(flag.Name, v)
	case []string:
		return flag.Name + ": " + yamlList(v)
	case []network:
		return flag.Name + ": " + yamlList(strings.FieldsFunc(textOf(flag.Target), func(r rune) bool { return r == ',' }))
	}
	text := textOf(flag.Target)
	switch {
	case text == "":
		return ""
	case flag.Name == "url" && s.remote.Place() != s.remote.Address:
		return "# url: " + yamlText(s.remote.Place())
	}
	return flag.Name + ": " + yamlText(text)
}

// secretLine returns the names of pairs, without their values, as a comment.
func secretLine(name string, values map[string]string) string {
	if len(values) == 0 {
		return ""
	}
	out := []string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, yamlText(key)+`: "***"`)
	}
	return "# " + name + ": {" + strings.Join(out, ", ") + "}"
}

// plain are texts that YAML takes without quotes as what they are.
var plain = regexp.MustCompile(`^[\w./](?:[\w./+-]|[ :][\w./+-])*$`)

// yamlText writes a text as a YAML scalar.
func yamlText(s string) string {
	if plain.MatchString(s) && !strings.EqualFold(s, "null") {
		return s
	}
	return strconv.Quote(s)
}

// yamlList writes a list on one line.
func yamlList(values []string) string {
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = yamlText(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

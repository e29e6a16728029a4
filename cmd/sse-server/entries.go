package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/entry"
)

// home returns the home directory, "" if there is none.
func (m *Main) home() string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if dir, _ := m.LookupEnv(name); dir != "" {
			return dir
		}
	}
	return ""
}

// initialize writes a file of servers, of what the files of clients have or what the arguments say, and
// returns the exit code.
func (m *Main) initialize(c *config.Config) int {
	file := c.Init.File
	if file == "" {
		file = "servers.yaml"
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(m.Stderr, "sse-server: %s is there already: give another name, as in: sse-server init other.yaml\n", file)
		return exitFailure
	}
	entries := m.found(c)
	if len(entries) == 0 {
		fmt.Fprintln(m.Stderr, "sse-server: no client of this user or folder has a server: give a command, as in: sse-server init -- npx -y @modelcontextprotocol/server-everything")
		return exitFailure
	}
	data, variables, names := config.FileOf(entries)
	if err := os.WriteFile(file, data, 0o600); err != nil { // entries may hold secrets
		fmt.Fprintf(m.Stderr, "sse-server: %v\n", err)
		return exitFailure
	}
	fmt.Fprintf(m.Stdout, "%s has %s: %s\n", file, count(len(names), "server"), strings.Join(names, ", "))
	if len(variables) > 0 {
		fmt.Fprintf(m.Stdout, "Set these variables first: %s\n", strings.Join(variables, ", "))
	}
	fmt.Fprintf(m.Stdout, "\n    sse-server --config %s\n\n", file)
	return exitOK
}

// found returns what the arguments say, else what the files of clients have.
func (m *Main) found(c *config.Config) (entries []config.Entry) {
	if c.Server.Kind() != config.OfDemo {
		header := map[string]string{}
		for _, one := range c.Header {
			name, value, _ := strings.Cut(one, ":")
			header[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		env := map[string]string{}
		for _, one := range c.Env {
			name, value, _ := strings.Cut(one, "=")
			env[name] = value
		}
		return []config.Entry{{Name: c.Title(&c.Server), Command: c.Command, Env: env, Dir: c.Dir, URL: c.URL, Header: header}}
	}
	all, err := entry.Find(m.home())
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(m.Stderr, "sse-server: left out: %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	for _, f := range all {
		e := config.Entry{Name: f.Name, From: f.File, Env: f.Env, Dir: f.Dir, URL: f.URL, Header: f.Headers}
		if f.Command != "" {
			e.Command = append([]string{f.Command}, f.Args...)
		}
		entries = append(entries, e)
	}
	return entries
}

// connect prints the entry of a client for the servers of c, or writes it into the client's file, and
// returns the exit code.
func (m *Main) connect(c *config.Config) int {
	if c.ConnectClient.Client == "" {
		fmt.Fprintf(m.Stderr, "sse-server: connect: name a client: %s\n", strings.Join(entry.Names(), ", "))
		return exitConfig
	}
	client, known := entry.Named(c.ConnectClient.Client)
	if !known {
		fmt.Fprintf(m.Stderr, "sse-server: connect: no entry is known of %q: want one of %s\n", c.ConnectClient.Client, strings.Join(entry.Names(), ", "))
		return exitConfig
	}
	servers, err := entriesOf(c)
	if err != nil {
		return m.refuse(err)
	}
	if name := c.ConnectClient.Server; name != "" {
		all := servers
		servers = slices.DeleteFunc(slices.Clone(servers), func(s entry.Server) bool { return s.Name != name })
		if len(servers) == 0 {
			var names []string
			for _, s := range all {
				names = append(names, s.Name)
			}
			fmt.Fprintf(m.Stderr, "sse-server: connect: there is no server %q: want one of %s\n", name, strings.Join(names, ", "))
			return exitConfig
		}
	}
	files := client.Files(m.home())
	if c.ConnectClient.File != "" {
		files = []string{c.ConnectClient.File}
	}
	if c.ConnectClient.Write || c.ConnectClient.File != "" {
		if len(files) == 0 {
			return m.refuse(fmt.Errorf("connect: %s has no file: run what sse-server connect %s prints", client.Name, client.Name))
		}
		replaced, err := client.Write(files[0], servers)
		if err != nil {
			fmt.Fprintf(m.Stderr, "sse-server: %v\n", err)
			return exitFailure
		}
		fmt.Fprintf(m.Stdout, "%s has %s. Start %s again.\n", files[0], count(len(servers), "entry", "entries"), client.Name)
		if len(replaced) > 0 {
			fmt.Fprintf(m.Stdout, "Replaced, as it had another URL: %s\n", strings.Join(replaced, ", "))
		}
	} else {
		fmt.Fprint(m.Stdout, client.Text(servers))
		if len(files) > 0 {
			fmt.Fprintf(m.Stderr, "sse-server: --write adds it to %s\n", files[0])
		}
	}
	if slices.ContainsFunc(servers, func(s entry.Server) bool { return s.Token }) {
		fmt.Fprintln(m.Stderr, "sse-server: put a token in the place of TOKEN")
	}
	return exitOK
}

// entriesOf returns the servers of c as clients are told of them.
func entriesOf(c *config.Config) (servers []entry.Server, err error) {
	if c.URL != "" && len(c.Servers) == 0 { // of a gateway that runs
		return []entry.Server{{Name: c.Title(&c.Server), URL: c.Remote().Place()}}, nil
	}
	base, err := c.Base()
	if err != nil {
		return nil, err
	}
	for _, s := range c.Each() {
		servers = append(servers, entry.Server{
			Name: c.Title(s), URL: base + pathOf(c, s), SSE: kindOf(s) == "sse", Token: c.Tokens != nil && len(c.OAuth) == 0,
		})
	}
	return servers, nil
}

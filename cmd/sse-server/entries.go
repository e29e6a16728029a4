package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// home returns the home directory, "" if there is none.
func (m *Main) home() string { return config.HomeOf(m.LookupEnv) }

// initialize writes a file of servers, of what the files of clients have or what the arguments say, and
// returns the exit code.
func (m *Main) initialize(c *config.Config) int {
	file := c.Init.File
	if file == "" {
		file = "servers.yaml"
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(m.Stderr, "sse-server: %s is there already: give another name, as in: sse-server init other.yaml\n", file)
		return exit.Failure
	}
	entries, ours := m.found(c)
	if len(ours) > 0 {
		fmt.Fprintf(m.Stdout, "Left out, as they lead to sse-server itself (with another --addr what is at this one is taken): %s\n", plaintext.Visible(strings.Join(ours, ", ")))
	}
	if len(entries) == 0 {
		fmt.Fprintln(m.Stderr, "sse-server: no client of this user or folder has a server that can be served: give a command, as in: sse-server init -- npx -y @modelcontextprotocol/server-everything")
		return exit.Failure
	}
	how := config.Making{Expand: c.Expand}
	if c.StateDir != "" {
		how.EnvFile = func(server string) string { return envFileFor(c.StateDir, server) }
	} else {
		fmt.Fprintln(m.Stderr, "sse-server: neither STATE_DIRECTORY nor HOME is set: secrets of the servers are in the file itself")
	}
	made := config.FileOf(entries, how)
	if err := writeMade(file, made); err != nil {
		fmt.Fprintf(m.Stderr, "sse-server: %v\n", err)
		return exit.Failure
	}
	fmt.Fprintf(m.Stdout, "%s has %s: %s\n", file, plaintext.Count(len(made.Names), "server"), plaintext.Visible(strings.Join(made.Names, ", ")))
	m.tellVariables(made.Variables)
	for _, path := range slices.Sorted(maps.Keys(made.EnvFiles)) {
		fmt.Fprintf(m.Stdout, "Values that may be secret are in %s\n", path)
	}
	m.checkMade(file, made)
	addr := ""
	if c.Given("addr") { // for which the entries were chosen
		addr = " --addr " + string(c.Addr)
	}
	fmt.Fprintf(m.Stdout, "\n    sse-server%s --config %s\n\n", addr, file)
	return exit.OK
}

// envFileFor returns the path of the env-file of a server in a file that is to be made. No other file has it, also if
// the file is renamed, and init makes another one of its name.
func envFileFor(stateDir, server string) string {
	return filepath.Join(stateDir, "env", server+"-"+strings.ToLower(rand.Text())+".env")
}

// writeMade writes a file that has been made, and the env-files that it names: none of them may be there. If that fails, it
// leaves none.
func writeMade(file string, made config.File) (err error) {
	var written []string
	defer func() {
		for _, path := range written {
			if err != nil {
				_ = os.Remove(path)
			}
		}
	}()
	write := func(path string, data []byte) error {
		to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // another init may run
		if err != nil {
			return err
		}
		written = append(written, path)
		_, err = to.Write(data)
		return errors.Join(err, to.Close())
	}
	if err := write(file, made.Data); err != nil {
		return err
	}
	for path, data := range made.EnvFiles {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := write(path, data); err != nil {
			return err
		}
	}
	return nil
}

// tellVariables says which variables a file refers to.
func (m *Main) tellVariables(all []config.Variable) {
	var texts []string
	for _, v := range all {
		text := v.Name
		if v.About != "" {
			text += " (" + v.About + ")"
		}
		texts = append(texts, text)
	}
	if len(texts) > 0 {
		fmt.Fprintf(m.Stdout, "Set these variables first: %s\n", plaintext.Visible(strings.Join(texts, ", ")))
	}
}

// checkMade says what a file that has been made lacks, and what check would refuse in it once its variables
// are set.
func (m *Main) checkMade(file string, made config.File) {
	c, err := config.Load([]string{"check", "--offline", "--config", file}, func(name string) (string, bool) {
		value, set := m.LookupEnv(name)
		if !set && slices.ContainsFunc(made.Variables, func(v config.Variable) bool { return v.Name == name }) {
			return "unset", true
		}
		return value, set
	}, new(config.Config))
	warnings, wrong := made.Warnings, []error{err}
	if err == nil {
		warnings = append(warnings, c.Warnings...)
		for _, s := range c.Each() {
			wrong = append(wrong, s.CheckCommand())
		}
	}
	for _, err := range wrong {
		if err != nil {
			warnings = append(warnings, "correct this before you start it: "+err.Error())
		}
	}
	for _, warning := range warnings {
		fmt.Fprintf(m.Stderr, "sse-server: %s\n", plaintext.Visible(warning))
	}
}

// found returns what the arguments say, else what the files of clients have, without the entries that lead
// to this sse-server itself, which it names.
func (m *Main) found(c *config.Config) (entries []config.Entry, ours []string) {
	if c.Server.Kind() != config.OfDemo {
		return []config.Entry{c.EntryOf()}, nil
	}
	all, err := clientfile.Find(m.home())
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(m.Stderr, "sse-server: left out: %s\n", plaintext.Visible(strings.TrimSuffix(line, "\n")))
		}
	}
	var files []string
	ignored := map[string][]string{} // by the files
	for _, f := range all {
		if len(f.Ignored) > 0 && ignored[f.File] == nil {
			files = append(files, f.File)
		}
		ignored[f.File] = append(ignored[f.File], f.Ignored...)
		e := config.Entry{Name: f.Name, From: f.File, Command: f.Command, Env: f.Env, Dir: f.Dir, URL: f.URL, Header: f.Header, Inputs: f.Inputs,
			OfProject: !clientfile.IsOfUser(f.File, m.home())}
		if f.EnvFile != "" {
			e.EnvFile = []string{f.EnvFile}
		}
		behind, isAnother := c.Behind(e)
		if !isAnother {
			ours = append(ours, f.Name+" of "+f.File)
			continue
		}
		entries = append(entries, behind)
	}
	for _, file := range files {
		slices.Sort(ignored[file])
		fmt.Fprintf(m.Stderr, "sse-server: %s: ignored, as they are the client's own: %s\n", file, plaintext.Visible(strings.Join(slices.Compact(ignored[file]), ", ")))
	}
	return entries, ours
}

// connect prints the entry of a client for the servers of c, or writes it into the client's file, and
// returns the exit code.
func (m *Main) connect(c *config.Config) int {
	if c.ConnectClient.Client == "" {
		fmt.Fprintf(m.Stderr, "sse-server: connect: name a client: %s\n", strings.Join(clients.Names(clients.WithEntry()), ", "))
		return exit.Config
	}
	client, _ := clients.Named(c.ConnectClient.Client)
	if names := clients.Names(clients.WithEntry()); client.Entry == nil {
		hint := cmp.Or(config.DidYouMean(c.ConnectClient.Client, names), ":")
		fmt.Fprintf(m.Stderr, "sse-server: connect: no entry is known of %q%s want one of %s\n", c.ConnectClient.Client, hint, strings.Join(names, ", "))
		return exit.Config
	}
	files := clientfile.Files(client.Entry, m.home())
	if c.ConnectClient.File != "" {
		files = []string{c.ConnectClient.File}
	}
	if c.ConnectClient.Undo {
		return m.undoEntries(c, client, files)
	}
	servers, err := clientServers(c)
	if err != nil {
		return m.refuse(err)
	}
	left := leftOut(c)
	if len(left) > 0 {
		fmt.Fprintf(m.Stderr, "sse-server: left out, as it may be secret: %s; add what the client needs\n", strings.Join(left, ", "))
	}
	if name := c.ConnectClient.Server; name != "" {
		all := servers
		servers = slices.DeleteFunc(slices.Clone(servers), func(s clients.Server) bool { return s.Name != name })
		if len(servers) == 0 {
			var names []string
			for _, s := range all {
				names = append(names, s.Name)
			}
			fmt.Fprintf(m.Stderr, "sse-server: connect: there is no server %q: want one of %s\n", name, strings.Join(names, ", "))
			return exit.Config
		}
	}
	whole := !slices.Contains(left, longParts)
	if c.ConnectClient.Write || c.ConnectClient.File != "" {
		if !whole {
			return m.refuse(fmt.Errorf("connect: the URL has a part that may be secret, which is not written: put what sse-server connect %s prints into the file, with your URL", client.Name))
		}
		return m.writeEntries(c, client, files, servers)
	}
	return m.printEntries(client, files, servers, whole)
}

// printEntries prints the entries, and how they get into the first of the files of a client, and returns the exit
// code. whole says that nothing of their URLs is left out.
func (m *Main) printEntries(client clients.Client, files []string, servers []clients.Server, whole bool) int {
	for _, s := range servers {
		if why := client.Entry.Lack(s); why != "" {
			fmt.Fprintf(m.Stderr, "sse-server: %s: %s\n", s.Name, why)
		}
	}
	text := client.Entry.Text(servers)
	if text == "" {
		return exit.Failure
	}
	fmt.Fprintln(m.Stdout, text)
	if about := client.Entry.AboutToken(servers); about != "" {
		fmt.Fprintf(m.Stderr, "sse-server: %s\n", about)
	}
	if len(files) > 0 {
		fmt.Fprintf(m.Stderr, "sse-server: --write adds it to %s\n", files[0])
	}
	if install, has := client.Entry.InstallOf(servers[0]); has && len(servers) == 1 && whole {
		fmt.Fprintf(m.Stderr, "sse-server: or open %s\n", install)
	}
	return exit.OK
}

// editor returns what changes the first of the files of a client, which it checks.
func (m *Main) editor(c *config.Config, client clients.Client, files []string) (*clientfile.Editor, error) {
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("connect: nothing is written for %s: put what sse-server connect %s prints into %s", client.Title, client.Name, client.Entry.Where)
	case c.StateDir == "":
		return nil, errors.New("connect: neither STATE_DIRECTORY nor HOME is set: there is no place for what the file has now")
	}
	return clientfile.NewEditor(filepath.Join(c.StateDir, "edited")), nil
}

// undoEntries restores the entries that were written into the first of the files of a client, and returns the exit code.
func (m *Main) undoEntries(c *config.Config, client clients.Client, files []string) int {
	editor, err := m.editor(c, client, files)
	if err != nil {
		return m.refuse(err)
	}
	undone, err := editor.Undo(client, files[0], c.ConnectClient.Server)
	if err != nil {
		fmt.Fprintf(m.Stderr, "sse-server: %v\n", err)
		return exit.Failure
	}
	if len(undone.Restored) > 0 {
		fmt.Fprintf(m.Stdout, "Restored %s in %s. Restart %s.\n", strings.Join(undone.Restored, ", "), files[0], client.Title)
	}
	if len(undone.Changed) > 0 {
		fmt.Fprintf(m.Stderr, "sse-server: left as it is, because somebody has changed it since: %s\n", strings.Join(undone.Changed, ", "))
		return exit.Failure
	}
	return exit.OK
}

// writeEntries adds the entries to the first of the files of a client, and returns the exit code.
func (m *Main) writeEntries(c *config.Config, client clients.Client, files []string, servers []clients.Server) int {
	editor, err := m.editor(c, client, files)
	if err != nil {
		return m.refuse(err)
	}
	written, err := editor.Write(client, files[0], servers, c.ConnectClient.Replace)
	if err != nil {
		fmt.Fprintf(m.Stderr, "sse-server: %v\n", err)
		return exit.Failure
	}
	if len(written.Same) > 0 {
		fmt.Fprintf(m.Stdout, "Already in %s: %s.\n", files[0], strings.Join(written.Same, ", "))
	}
	if len(written.Replaced) > 0 {
		fmt.Fprintf(m.Stdout, "Replaced %s in %s, as it had another URL. Restart %s.\n", strings.Join(written.Replaced, ", "), files[0], client.Title)
	}
	if len(written.Taken) > 0 {
		fmt.Fprintf(m.Stdout, "Took over %s in %s. Restart %s. sse-server connect %s --undo restores what was there.\n", strings.Join(written.Taken, ", "), files[0], client.Title, client.Name)
	}
	if len(written.Added) > 0 {
		fmt.Fprintf(m.Stdout, "Added %s to %s. Restart %s.\n", strings.Join(written.Added, ", "), files[0], client.Title)
	}
	if written.Unlinked {
		fmt.Fprintf(m.Stdout, "%s had more names (hard links). They keep what it had, because they may be those of a backup: link them again if they are not.\n", files[0])
	}
	if about := client.Entry.AboutTokenInFile(servers); about != "" {
		fmt.Fprintf(m.Stderr, "sse-server: %s\n", about)
	}
	return exit.OK
}

// clientServers returns the servers of c as clients are told of them.
func clientServers(c *config.Config) (servers []clients.Server, err error) {
	if c.URL != "" && len(c.Servers) == 0 { // of a gateway that runs
		return []clients.Server{{Name: remoteName(c), URL: c.Remote().Place(), Program: ourselves(os.Executable())}}, nil
	}
	base, err := c.Base()
	if err != nil {
		return nil, err
	}
	return serversOf(c, base), nil
}

// ourselves returns how a client starts this program: by its path, because a program with a window has no PATH
// of a shell. go run removes the file when it ends, so that has the name alone.
func ourselves(self string, err error) string {
	if err != nil || strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "sse-server"
	}
	return self
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// remoteName returns the name of the server at --url: that of --name, the path before its route, or one in its host.
func remoteName(c *config.Config) string {
	at, err := url.Parse(c.Remote().Address)
	if c.Called != "" || err != nil {
		return c.Title(&c.Server)
	}
	route := strings.TrimSuffix(at.Path, "/")
	for _, ending := range []string{"/mcp", "/sse"} {
		if before, ok := strings.CutSuffix(route, ending); ok {
			if name := path.Base(before); name != "." && len(name) <= 30 && !notInNames.MatchString(strings.ReplaceAll(name, "-", "")) {
				return name
			}
		}
	}
	if name := c.Title(&c.Server); name != "remote" {
		return name
	}
	if at.Port() == "" {
		return "mcp"
	}
	return "mcp-" + at.Port() // of an address, which is not a name: two gateways of one machine have two
}

// longParts says that the URL of an entry lacks a part, so that it does not work as it is.
const longParts = "long parts of the path"

// leftOut says what the entry for --url lacks of what was given.
func leftOut(c *config.Config) (all []string) {
	if c.URL == "" || len(c.Servers) > 0 {
		return nil
	}
	at, err := url.Parse(c.Remote().Address)
	if err != nil {
		return nil
	}
	if at.User != nil {
		all = append(all, "user and password")
	}
	if at.RawQuery != "" {
		all = append(all, "the query")
	}
	if strings.Contains(c.Remote().Place(), "/...") {
		all = append(all, longParts)
	}
	if names := slices.Sorted(maps.Keys(c.Remote().Header)); len(names) > 0 {
		all = append(all, "headers ("+strings.Join(names, ", ")+")")
	}
	return all
}

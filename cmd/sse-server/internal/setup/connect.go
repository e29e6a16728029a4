package setup

import (
	"cmp"
	"errors"
	"fmt"
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
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/shellword"
)

// Connect prints the entry of a client for the servers of c, or writes it into the client's file, and
// returns the exit code.
func (cmd *Command) Connect(c *config.Config) int {
	if c.ConnectClient.Client == "" {
		fmt.Fprintf(cmd.Stderr, "sse-server: connect: name a client: %s\n",
			strings.Join(clients.Names(clients.WithEntry()), ", "))
		return exit.Config
	}
	client, _ := clients.Named(c.ConnectClient.Client)
	if names := clients.Names(clients.WithEntry()); client.Entry == nil {
		hint := cmp.Or(config.DidYouMean(c.ConnectClient.Client, names), ":")
		fmt.Fprintf(cmd.Stderr, "sse-server: connect: no entry is known of %q%s want one of %s\n",
			c.ConnectClient.Client, hint, strings.Join(names, ", "))
		return exit.Config
	}
	files := clientfile.Files(client.Entry, cmd.home())
	if c.ConnectClient.File != "" {
		files = []string{c.ConnectClient.File}
	}
	if c.ConnectClient.Undo {
		return cmd.undoEntries(c, client, files)
	}
	servers, err := clientServers(c)
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	left := leftOut(c)
	if at, err := url.Parse(c.URL); c.URL != "" && err == nil && strings.Trim(at.Path, "/") == "" {
		fmt.Fprintf(cmd.Stderr,
			"sse-server: the URL has no path: that of an sse-server ends with /mcp, as in: --url %s\n",
			(&url.URL{Scheme: at.Scheme, Host: at.Host, Path: "/mcp"}).String())
	}
	if len(left) > 0 {
		fmt.Fprintf(cmd.Stderr, "sse-server: left out, as it may be secret: %s; add what the client needs\n",
			strings.Join(left, ", "))
	}
	if c.Called == "" && len(c.Servers) == 0 && c.Kind() == config.OfDemo {
		fmt.Fprintln(cmd.Stderr, "sse-server: this is the entry of the demo server: give the options with which your "+
			"sse-server serves, such as --config FILE")
	}
	if name := c.ConnectClient.Server; name != "" {
		all := servers
		servers = slices.DeleteFunc(slices.Clone(servers), func(s clients.Server) bool { return s.Name != name })
		if len(servers) == 0 {
			var names []string
			for _, s := range all {
				names = append(names, s.Name)
			}
			fmt.Fprintf(cmd.Stderr, "sse-server: connect: there is no server %q: want one of %s\n", name,
				strings.Join(names, ", "))
			return exit.Config
		}
	}
	whole := !slices.Contains(left, longParts)
	if c.ConnectClient.Write || c.ConnectClient.File != "" {
		if !whole {
			return exit.Refuse(cmd.Stderr, fmt.Errorf("connect: the URL has a part that may be secret, which is not "+
				"written: put what sse-server connect %s prints into the file, with your URL", client.Name))
		}
		return cmd.writeEntries(c, client, files, servers)
	}
	return cmd.printEntries(client, files, servers, whole)
}

// printEntries prints the entries, and how they get into the first of the files of a client, and returns the exit
// code. whole says that nothing of their URLs is left out.
func (cmd *Command) printEntries(client clients.Client, files []string, servers []clients.Server, whole bool) int {
	for _, s := range servers {
		if why := client.Entry.Lack(s); why != "" {
			fmt.Fprintf(cmd.Stderr, "sse-server: %s: %s\n", s.Name, why)
		}
	}
	text := client.Entry.Text(servers)
	if text == "" {
		return exit.Failure
	}
	fmt.Fprintln(cmd.Stdout, text)
	if about := client.Entry.AboutToken(servers); about != "" {
		fmt.Fprintf(cmd.Stderr, "sse-server: %s\n", about)
	}
	if len(files) > 0 {
		fmt.Fprintf(cmd.Stderr, "sse-server: --write adds it to %s\n", files[0])
	}
	if install, has := client.Entry.InstallOf(servers[0]); has && len(servers) == 1 && whole {
		fmt.Fprintf(cmd.Stderr, "sse-server: or open %s\n", install)
	}
	return exit.OK
}

// editor returns what changes the first of the files of a client, which it checks.
func (cmd *Command) editor(c *config.Config, client clients.Client, files []string) (*clientfile.Editor, error) {
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("connect: nothing is written for %s: put what sse-server connect %s prints into %s",
			client.Title, client.Name, client.Entry.Where)
	case c.StateDir == "":
		return nil, errors.New("connect: neither STATE_DIRECTORY nor HOME is set: " +
			"there is no place for what the file has now")
	}
	return clientfile.NewEditor(filepath.Join(c.StateDir, "edited")), nil
}

// undoEntries restores the entries that the last run has changed in the files of a client, names what else is changed,
// and returns the exit code.
func (cmd *Command) undoEntries(c *config.Config, client clients.Client, files []string) int {
	editor, err := cmd.editor(c, client, files)
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	name, all := c.ConnectClient.Server, files
	if c.ConnectClient.File == "" { // init has also changed files to which connect writes nothing
		all = cmd.filesOf(client)
	}
	last, run := changedLast(editor, all, name)
	code := exit.OK
	for _, file := range last {
		if !cmd.undoFile(editor, client, file, name) {
			code = exit.Failure
		}
	}
	for _, file := range all {
		if of, isChanged := editor.RunOf(file, name); isChanged && of != "" && of < run {
			fmt.Fprintf(cmd.Stdout, "%s is changed, too, by an earlier run: sse-server connect %s --undo --file %s "+
				"restores it.\n", file, strings.TrimSpace(client.Name+" "+name), shellword.Quote(file))
		}
	}
	if run != "" && name == "" && c.ConnectClient.File == "" {
		cmd.tellOthers(editor, client, run)
	}
	return code
}

// changedLast returns those of some files that the last run has changed which has changed an entry with a name, any if
// that is empty, and that run. It is the first of them, to which connect writes, if none has.
func changedLast(editor *clientfile.Editor, all []string, name string) (last []string, run string) {
	for _, file := range all {
		switch of, isChanged := editor.RunOf(file, name); {
		case !isChanged || of < run:
		case of > run:
			last, run = []string{file}, of
		default:
			last = append(last, file)
		}
	}
	if len(last) == 0 {
		last = all[:1]
	}
	return last, run
}

// filesOf returns the files of a client, each once: in the home directory one of a project may be one of the user.
func (cmd *Command) filesOf(client clients.Client) (files []string) {
	var whole []string
	for _, file := range append(clientfile.Files(client.Entry, cmd.home()),
		clientfile.Others(client.Entry, cmd.home())...) {
		path := file
		if real, err := filepath.EvalSymlinks(file); err == nil {
			path = real
		}
		if at, err := filepath.Abs(path); err == nil {
			path = at
		}
		if slices.Contains(whole, path) {
			continue
		}
		files, whole = append(files, file), append(whole, path)
	}
	return files
}

// undoFile restores the entries of a file, or the one with a name, and reports whether all are restored.
func (cmd *Command) undoFile(editor *clientfile.Editor, client clients.Client, file, name string) bool {
	undone, err := editor.Undo(client, file, name)
	if err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: %v\n", err)
		return false
	}
	if said := saidOf(undone, file); said != "" {
		fmt.Fprintf(cmd.Stdout, "%s. Restart %s.\n", said, client.Title)
	}
	if len(undone.Changed) > 0 {
		fmt.Fprintf(cmd.Stderr, "sse-server: left as it is in %s, because somebody has changed it since: %s\n", file,
			strings.Join(undone.Changed, ", "))
	}
	return len(undone.Changed) == 0
}

// saidOf says which entries of a file are as they were before; empty: none.
func saidOf(undone clientfile.Undone, file string) string {
	restored, removed := strings.Join(undone.Restored, ", "), strings.Join(undone.Removed, ", ")
	switch {
	case restored != "" && removed != "":
		return fmt.Sprintf("Restored %s in %s; removed %s", restored, file, removed)
	case restored != "":
		return fmt.Sprintf("Restored %s in %s", restored, file)
	case removed != "":
		return fmt.Sprintf("Removed %s from %s", removed, file)
	}
	return ""
}

// tellOthers names the other clients whose files a run has changed, with what restores them.
func (cmd *Command) tellOthers(editor *clientfile.Editor, client clients.Client, run string) {
	for _, other := range clients.WithEntry() {
		if other.Name == client.Name {
			continue
		}
		for _, file := range cmd.filesOf(other) {
			if of, isChanged := editor.RunOf(file, ""); isChanged && of == run {
				fmt.Fprintf(cmd.Stdout, "The same run has changed %s: sse-server connect %s --undo restores it.\n",
					file, other.Name)
			}
		}
	}
}

// writeEntries adds the entries to the first of the files of a client, and returns the exit code.
func (cmd *Command) writeEntries(
	c *config.Config, client clients.Client, files []string, servers []clients.Server,
) int {
	editor, err := cmd.editor(c, client, files)
	if err != nil {
		return exit.Refuse(cmd.Stderr, err)
	}
	written, err := editor.Write(client, files[0], servers, c.ConnectClient.Replace)
	if err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: %v\n", err)
		return exit.Failure
	}
	if len(written.Same) > 0 {
		fmt.Fprintf(cmd.Stdout, "Already in %s: %s.\n", files[0], strings.Join(written.Same, ", "))
	}
	if len(written.Replaced) > 0 {
		fmt.Fprintf(cmd.Stdout, "Replaced %s in %s, as it had another URL. Restart %s.\n",
			strings.Join(written.Replaced, ", "), files[0], client.Title)
	}
	if len(written.Taken) > 0 {
		fmt.Fprintf(cmd.Stdout, "Took over %s in %s. Restart %s. sse-server connect %s --undo restores what was "+
			"there.\n", strings.Join(written.Taken, ", "), files[0], client.Title, client.Name)
	}
	if len(written.Added) > 0 {
		approve := ""
		if client.Entry.Approves && !clientfile.IsOfUser(files[0], cmd.home()) {
			approve = ", and approve the server there"
		}
		fmt.Fprintf(cmd.Stdout, "Added %s to %s. Restart %s%s.\n", strings.Join(written.Added, ", "), files[0],
			client.Title, approve)
	}
	if written.Unlinked {
		fmt.Fprintf(cmd.Stdout, "%s had more names (hard links). They keep what it had, "+
			"because they may be those of a backup: link them again if they are not.\n", files[0])
	}
	if about := client.Entry.AboutTokenInFile(servers); about != "" {
		fmt.Fprintf(cmd.Stderr, "sse-server: %s\n", about)
	}
	return exit.OK
}

// clientServers returns the servers and views of c that the arguments choose, as clients are told of them.
func clientServers(c *config.Config) (servers []clients.Server, err error) {
	if c.URL != "" && len(c.Servers) == 0 { // of a gateway that runs
		program, args := startedBy(ourselves(os.Executable()), buildinfo.NPMPackage)
		return []clients.Server{{Name: remoteName(c), URL: c.Remote().Place(),
			Program: program, ProgramArgs: args}}, nil
	}
	base, err := c.Base()
	if err != nil {
		return nil, err
	}
	switch {
	case c.ConnectClient.Server != "": // which is chosen of all
		return serversOf(c, base, c.Endpoints()), nil
	case c.ConnectClient.Replace: // each takes over the client's own entry
		return serversOf(c, base, c.Each()), nil
	}
	return serversOf(c, base, c.Pasted()), nil
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
			if name := path.Base(before); name != "." && len(name) <= 30 &&
				!notInNames.MatchString(strings.ReplaceAll(name, "-", "")) {
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

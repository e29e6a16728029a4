package setup

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// taken is an entry of a client that can go, with the name that its server has in the file.
type taken struct {
	clientfile.Found
	server string
}

// place is a file of a client of the user, with its entries that can go.
type place struct {
	client  clients.Client
	file    string
	entries []taken
}

// offer is what has become of the question whether clients use the gateway.
type offer struct {
	unasked bool     // there was a client to ask for, and nobody to answer
	taken   bool     // a client uses it
	refused []string // these do not, as their user wants
}

// offerGateway lets each client that has entries in the file that was made use the gateway in their place: first each
// of their servers starts once, and one session goes through the entry that clients get. Then the client gets it, if
// its user wants that. isWhole says that the file can be served as it is.
func (cmd *Command) offerGateway(
	c *config.Config, file string, made config.File, found []clientfile.Found, isWhole bool,
) (offered offer) {
	places, names := placesOf(found, made.NameOf)
	switch {
	case cmd.Try == nil, len(places) == 0, made.Gateway == "":
		return offer{}
	case !isWhole:
		fmt.Fprintf(cmd.Stderr, "sse-server: no client is changed, because %s cannot be served yet: do what is said "+
			"above, delete it, and run init again\n", file)
		return offer{}
	case c.StateDir == "":
		fmt.Fprintln(cmd.Stderr, "sse-server: no client is changed: there is no place for what its file has now")
		return offer{}
	case cmd.Answers == nil && !c.Init.Yes:
		return offer{unasked: true}
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: %v\n", err)
		return offer{}
	}
	fmt.Fprintln(cmd.Stdout, "\nEach server starts once:")
	var failed []string
	for _, name := range names {
		said, code := cmd.Try(whole, "check", name, "--config", whole, "--learn-too", "--log-level", "error")
		fmt.Fprint(cmd.Stdout, said)
		if code != exit.OK {
			failed = append(failed, name)
		}
	}
	for i := range places {
		places[i].entries = slices.DeleteFunc(places[i].entries,
			func(e taken) bool { return slices.Contains(failed, e.server) })
	}
	cmd.tellStays(found, made.NameOf, failed)
	if !slices.ContainsFunc(places, func(p place) bool { return len(p.entries) > 0 }) {
		return offer{}
	}
	program, before := startedBy(ourselves(os.Executable()), buildinfo.NPMPackage)
	args := append(before, "stdio", "--connect", "--config", whole)
	fmt.Fprintln(cmd.Stdout, "\nThrough the gateway, as clients start it:")
	if !cmd.tryGateway(whole, append([]string{program}, args...)) {
		fmt.Fprintln(cmd.Stderr, "sse-server: no client is changed, because the gateway does not answer")
		return offer{}
	}
	answers := bufio.NewScanner(cmd.Answers)
	if cmd.Answers == nil {
		answers = bufio.NewScanner(strings.NewReader(""))
	}
	editor := clientfile.NewEditor(filepath.Join(c.StateDir, "edited"))
	for _, p := range places {
		if len(p.entries) == 0 {
			continue
		}
		cmd.describe(p, &made)
		if !c.Init.Yes && !cmd.agrees(answers) {
			offered.refused = append(offered.refused, p.client.Title)
			continue
		}
		if cmd.exchange(editor, p, clients.Server{Name: p.freeName(found), Program: program, Args: args}) {
			offered.taken = true
		}
	}
	return offered
}

// maxGatewayTries is how often the gateway is tried until it has tools: its servers start when it does, and a list that
// is asked for before is without their tools.
const maxGatewayTries = 3

// tryGateway says what the gateway of a file is to a client that starts it with a command, and reports whether it
// works.
func (cmd *Command) tryGateway(file string, command []string) bool {
	try := append([]string{"check", "--start", "--name", config.GatewayName, "--no-remember", "--log-level", "error",
		"--"}, command...)
	var said string
	var code int
	for range maxGatewayTries {
		if said, code = cmd.Try(file, try...); code != exit.OK || !strings.Contains(said, ": 0 tools") {
			break
		}
	}
	fmt.Fprint(cmd.Stdout, said)
	return code == exit.OK
}

// placesOf returns the files of clients of which entries can go, and the names of the servers of these. nameOf has that
// of each entry.
func placesOf(found []clientfile.Found, nameOf []string) (places []place, names []string) {
	for i, f := range found {
		if f.Stays != "" {
			continue
		}
		at := slices.IndexFunc(places, func(p place) bool { return p.file == f.File })
		if at < 0 {
			at, places = len(places), append(places, place{client: f.Client, file: f.File})
		}
		places[at].entries = append(places[at].entries, taken{f, nameOf[i]})
		if !slices.Contains(names, nameOf[i]) {
			names = append(names, nameOf[i])
		}
	}
	return places, names
}

// tellStays says which entries stay in their clients, and why.
func (cmd *Command) tellStays(found []clientfile.Found, nameOf, failed []string) {
	var lines []string
	for i, f := range found {
		why := f.Stays
		if why == "" && slices.Contains(failed, nameOf[i]) {
			why = "it did not start"
		}
		if why != "" {
			lines = append(lines, fmt.Sprintf("  %s of %s: %s", f.Name, f.File, why))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintln(cmd.Stdout, "\nThese stay in their clients:")
	}
	for _, line := range lines {
		fmt.Fprintln(cmd.Stdout, plaintext.Visible(line))
	}
}

// freeName returns a name for the entry of the gateway that no entry has which stays in the file.
func (p place) freeName(found []clientfile.Found) string {
	name := config.GatewayName
	for i := 2; ; i++ {
		isTaken := slices.ContainsFunc(found, func(f clientfile.Found) bool {
			return f.File == p.file && f.Name == name &&
				!slices.ContainsFunc(p.entries, func(e taken) bool { return e.Name == name })
		})
		if !isTaken {
			return name
		}
		name = fmt.Sprintf("%s-%d", config.GatewayName, i)
	}
}

// describe says what would change for a client.
func (cmd *Command) describe(p place, made *config.File) {
	var names []string
	for _, e := range p.entries {
		names = append(names, e.Name)
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(cmd.Stdout, plaintext.Visible(fmt.Sprintf(format, args...)))
	}
	fmt.Fprintln(cmd.Stdout)
	say("%s, %s: %s would be one entry, %s, with the tools of all servers above", p.client.Title, p.file,
		strings.Join(names, ", "), config.GatewayName)
	for _, e := range p.entries {
		if len(e.Ignored) > 0 {
			say("  %s loses what is the client's own: %s", e.Name, strings.Join(slices.Compact(e.Ignored), ", "))
		}
	}
	first, front := p.entries[0], "%s: "
	if p.client.Front != "" {
		front = p.client.Front
	}
	say("  names of tools change: %sx becomes %s%sx", fmt.Sprintf(front, first.Name),
		fmt.Sprintf(front, config.GatewayName), made.PrefixInGateway(first.server))
	for _, rule := range clientfile.Rules(p.client, cmd.home(), p.file, names) {
		say("  change this rule yourself: %s: %s: %s", rule.File, rule.Place, rule.Text)
	}
}

// agrees asks whether the client shall use the gateway, again after an answer that is neither yes nor no. No answer is
// no.
func (cmd *Command) agrees(answers *bufio.Scanner) bool {
	for {
		fmt.Fprint(cmd.Stdout, "Use the gateway instead? [y/N] ")
		switch {
		case !answers.Scan():
			fmt.Fprintln(cmd.Stdout)
			return false
		case terminal.IsYes(answers.Text()):
			return true
		case terminal.IsNo(answers.Text()):
			return false
		}
	}
}

// exchange writes the entry of the gateway into the file of a client, in the place of its own, and reports whether it
// is there.
func (cmd *Command) exchange(editor *clientfile.Editor, p place, s clients.Server) bool {
	var names []string
	for _, e := range p.entries {
		names = append(names, e.Name)
	}
	unlinked, err := editor.Exchange(p.client, p.file, names, s)
	if err != nil {
		fmt.Fprintf(cmd.Stderr, "sse-server: not changed: %s\n", plaintext.Visible(err.Error()))
		return false
	}
	fmt.Fprintf(cmd.Stdout, "%s uses the gateway now. Restart it. sse-server connect %s --undo restores what was "+
		"there.\n", p.client.Title, p.client.Name)
	if unlinked {
		fmt.Fprintf(cmd.Stdout, "%s had more names (hard links). They keep what it had.\n", p.file)
	}
	return true
}

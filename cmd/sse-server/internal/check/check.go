// Package check says what servers are, or why one cannot be used and what to do.
//
//	start.go  after the banner, while the program serves
//	offer.go  the tools that clients get of a server or view, and what is left out
//	try.go    check --start, which starts each server and ends it
//	tools.go  the command tools; cost.go: what a list costs
//	url.go    check --url, which is a client of a server that runs
package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/selection"
)

// Check says it on the terminal or the pipes of the program.
type Check struct {
	Stdout, Stderr io.Writer
	Live           *terminal.Line // of Stdout
	Silence        time.Duration  // how long nothing may be said to a pipe; 0 means 3 s
	// Log keeps what servers write at their starts out of the log; nil if that is elsewhere.
	Log *observe.Starts
}

// out returns a writer to Stdout, above the live line.
func (k *Check) out() io.Writer { return k.Live.Over(k.Stdout) }

func (k *Check) silence() time.Duration { return cmp.Or(k.Silence, terminal.Silence) }

// showWaiting shows for what the check waits. The caller must call end.
func (k *Check) showWaiting(what string, limit time.Duration) (end func()) {
	return k.Live.ShowWaiting(what, limit, k.silence(), k.Stderr)
}

// titleOf returns what a line calls a server that has a name in front of it.
func titleOf(found handshake.Found) string { return cmp.Or(found.Version, found.Name) }

// fromMemory is the end of a line about a server that was not started.
const fromMemory = "from memory, starts with the first call"

// startedIn is the end of a line about a server that was started.
func startedIn(d time.Duration, found handshake.Found) string {
	if found.NoTools != nil || found.Memory <= 0 {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f s, %d MiB", d.Seconds(), (found.Memory+1<<19)>>20)
}

// summary says what a server is and has, by the words for it, and how that is known. Of what the rules leave something
// out it says how much is offered.
func summary(server string, found handshake.Found, rules *selection.Rules, how string) string {
	text := fmt.Sprintf("%s, MCP %s: ", server, found.ProtocolVersion)
	if found.NoTools != nil {
		return fmt.Sprintf("%s%s (%s)", text, noTools(found), how)
	}
	text += count(rules, selection.Tools, found.Tools, "tool")
	if len(found.Prompts) > 0 {
		text += ", " + count(rules, selection.Prompts, found.Prompts, "prompt")
	}
	if len(found.Resources) > 0 {
		text += ", " + count(rules, selection.Resources, found.Resources, "resource")
	}
	return fmt.Sprintf("%s (%s)", text, how)
}

// count says how many there are of a kind, and how many of them the rules leave: 7 of 40 tools.
func count(rules *selection.Rules, kind selection.Kind, all []json.RawMessage, word string) string {
	text := plaintext.Count(len(all), word)
	if left := len(offered(rules, kind, all)); left < len(all) {
		text = fmt.Sprintf("%d of %s", left, text)
	}
	return text
}

// offered returns what the rules leave of a list.
func offered(rules *selection.Rules, kind selection.Kind, all []json.RawMessage) (left []json.RawMessage) {
	for _, one := range all {
		if rules.Entry(kind, one).Allowed() {
			left = append(left, one)
		}
	}
	return left
}

// unmet says which rules meet nothing of what a server lists: usually typing errors.
func unmet(rules *selection.Rules, found handshake.Found) (lines []string) {
	for _, rule := range found.Unmet(rules) {
		lines = append(lines, "WARNING: "+rule+" meets nothing that the server lists")
	}
	return lines
}

// noTools says why there is no list of tools.
func noTools(found handshake.Found) string {
	return "no list of tools: " + strings.TrimPrefix(plaintext.Words(found.NoTools.Error()), "list tools: ")
}

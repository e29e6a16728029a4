// Package check says what servers are, or why one cannot be used and what to do.
//
//	start.go  after the banner, while the program serves
//	try.go    check --start, which starts each server and ends it
//	url.go    check --url, which is a client of a server that runs
package check

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/handshake"
)

// Check says it on the terminal or the pipes of the program.
type Check struct {
	Stdout, Stderr io.Writer
	Live           *terminal.Line // of Stdout
	Silence        time.Duration  // how long nothing may be said to a pipe; 0 means 3 s
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

// summary says what a server is and has, by the words for it, and how that is known.
func summary(server string, found handshake.Found, how string) string {
	text := fmt.Sprintf("%s, MCP %s: ", server, found.ProtocolVersion)
	if found.NoTools != nil {
		return fmt.Sprintf("%s%s (%s)", text, noTools(found), how)
	}
	text += plaintext.Count(len(found.Tools), "tool")
	if found.Prompts > 0 {
		text += ", " + plaintext.Count(found.Prompts, "prompt")
	}
	if found.Resources > 0 {
		text += ", " + plaintext.Count(found.Resources, "resource")
	}
	return fmt.Sprintf("%s (%s)", text, how)
}

// noTools says why there is no list of tools.
func noTools(found handshake.Found) string {
	return "no list of tools: " + strings.TrimPrefix(plaintext.Words(found.NoTools.Error()), "list tools: ")
}

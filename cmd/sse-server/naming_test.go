package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
)

// longName is a server that calls itself mcp-servers/long, with a tool whose name has 50 characters.
var longName = `read -r _
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"mcp-servers/long","version":"1"}}}'
while read -r line; do
	case $line in *tools/list*) id=${line#*\"id\":}; echo '{"jsonrpc":"2.0","id":'${id%%[,\}]*}',"result":{"tools":[{"name":"` +
	strings.Repeat("t", 50) + `","inputSchema":{"type":"object"}}]}}';; esac
done`

// Clients put the name of a server in front of those of its tools: that which people paste, whatever the server
// calls itself. The banner, the limits in the log and those of check --for have the same name.
func TestLimitsAreThoseOfTheNameToPaste(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"people-say": `names of 60 characters with "people-say_" in front`, "short": ""} {
		command := []string{"--name", name, "--", "sh", "-c", longName}
		p := start(t, append([]string{"--addr", "127.0.0.1:0"}, command...)...)
		if _, err := connectTo(t, p.url).ListTools(t.Context(), nil); err != nil {
			t.Errorf("tools: %v", err)
		}
		p.stop()
		if !strings.Contains(p.out.String(), "claude mcp add --scope user --transport http "+name+" http") {
			t.Errorf("%s is not what the banner pastes:\n%s", name, p.out.String())
		}
		checked := launch(t, append([]string{"check", "--start", "--for", "cursor"}, command...)...)
		checked.wantExit(exit.OK)
		for what, text := range map[string]string{"the log": strings.ReplaceAll(p.log.String(), `\"`, `"`), "check --for": checked.out.String()} {
			if limit != "" && !strings.Contains(text, limit) || limit == "" && strings.Contains(text, "in front") {
				t.Errorf("%s: %s has not the limit %q:\n%s", name, what, limit, text)
			}
		}
	}
}

// The lines of the log about a single server have the name that people know, as if there were several.
func TestLogHasTheNameOfASingleServer(t *testing.T) {
	t.Parallel()
	p := start(t, "--addr", "127.0.0.1:0", "--log-level", "debug", "--start-check", "--name", "people-say", "--", "sh", "-c", longName)
	p.out.await(t, 1, ": 1 tool (")
	connectTo(t, p.url)
	p.stop()
	_, after, _ := strings.Cut(p.log.String(), "msg=serving ")
	serving, after, _ := strings.Cut(after, "\n")
	named, ofProgram := 0, regexp.MustCompile(`msg=(stopping|stopped)\b`)
	for line := range strings.Lines(after) {
		switch {
		case strings.Count(line, " server=people-say ") == 1:
			named++
		case !ofProgram.MatchString(line):
			t.Errorf("no name of the server, or two: %s", line)
		}
	}
	if named < 4 || strings.Count(serving, " server=people-say") != 1 {
		t.Errorf("%d lines have the name of the server:\n%s", named, p.log.String())
	}
}

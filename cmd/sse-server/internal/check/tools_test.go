package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/terminal"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const teamFile = `servers:
  github: {command: [sh], exclude: ["delete_*"]}
  brave: {command: [sh]}
  notes: {command: [sh], include: ["*_note", "*_nte"]}
  gone: {command: [sh]}
views:
  team:
    for: trae
    servers:
      github: {include: ["*_issue", "*isue*"], only: non-destructive}
      brave: {prefix: "", rename: {brave_web_search: web_search}, describe: {web_search: "Searches."}}
      notes: {prefix: ""}
      gone: {}
`

// readByHand returns a lister that has read these servers, by their names. Others have failed.
func readByHand(t *testing.T, servers map[string]string, args ...string) (*lister, *bytes.Buffer) {
	t.Helper()
	return readFileByHand(t, teamFile, servers, args...)
}

func readFileByHand(t *testing.T, file string, servers map[string]string, args ...string) (*lister, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	c := load(t, append([]string{"tools", "-c", clitest.WriteFile(t, "gw.yaml", file)}, args...)...)
	l := &lister{check: &Check{Stdout: &out}, c: c, read: map[*config.Server]*reading{}}
	for _, s := range c.Each() {
		r := &reading{server: s, name: s.Name, took: time.Second}
		l.read[s] = r
		tools, ok := servers[s.Name]
		if !ok {
			r.err = errors.New("start \"sh\": exit status 1")
			continue
		}
		ssetest.Must(t, json.Unmarshal([]byte(tools), &r.found.Tools))
		r.fromMemory = s.Name == "notes"
	}
	return l, &out
}

var teamTools = map[string]string{
	"github": `[{"name":"create_issue","annotations":{"destructiveHint":false}},{"name":"close_issue"},{"name":"delete_repo"},{"name":"list_commits"}]`,
	"brave":  `[{"name":"brave_web_search","description":"x"},{"name":"a_note"},{"name":"a_tool_with_a_name_that_is_longer_than_trae_takes_in_one_list"}]`,
	"notes":  `[{"name":"a_note"},{"name":"note"},{"name":"evil\u001b[0m"}]`,
}

// The command prints of a view: final name, server and own name; each rule that leaves something out, of the server or
// the view, by name, hint, name taken or limit; rules that meet nothing; and the cost.
func TestToolsOfAView(t *testing.T) {
	l, out := readByHand(t, teamTools, "team", "--for", "trae")
	offers, err := l.offers()
	ssetest.Must(t, err)
	for _, o := range offers {
		l.print(o)
	}
	ssetest.Want(t, "what is printed", out.String(), `team, for trae: 3 of 10 tools of github, brave, notes; without those of gone
  name                  characters  server  own name
  github__create_issue  71          github  create_issue
  web_search            47          brave   brave_web_search
  a_note                17          brave   a_note
notes: from memory, it was not started
gone: FAILED: start "sh": exit status 1
  what to do: run the command alone in a terminal to see more of it
left out:
  delete_repo                                                    github  exclude "delete_*" of the server
  note                                                           notes   not in include of the server
  evil\x1b[0m                                                    notes   not in include of the server
  close_issue                                                    github  only non-destructive
  list_commits                                                   github  not in include
  a_note                                                         notes   the name a_note is that of brave "a_note": rename one of the two
  a_tool_with_a_name_that_is_longer_than_trae_takes_in_one_list  brave   trae takes names of 60 characters with "team_" in front, and this one has 66
rules that meet nothing, usually typing errors:
  notes: include "*_nte" of the server
  github: include "*isue*"
the list: 149 characters, 9 of them in descriptions; about 38 tokens, one for 4 characters
  trae  3 of 40 tools, 9 of 8000 characters of descriptions, 25 of 60 characters in the longest name
`)
}

// Programs get the same in JSON, where no list is null.
func TestToolsInJSON(t *testing.T) {
	l, out := readByHand(t, map[string]string{"brave": `[{"name":"a","description":"ä"}]`}, "--for", "trae", "--json")
	offers, err := l.offers()
	ssetest.Must(t, err)
	l.printJSON(offers)
	var got struct {
		CharactersPerToken int
		Offers             []struct {
			Name, Kind, For string
			Servers         []struct{ Name, Error string }
			Tools           []struct {
				Name, Server, Own string
				Characters        int
			}
			Cost    cost
			Clients []fit
		}
	}
	ssetest.Must(t, json.Unmarshal(out.Bytes(), &got))
	ssetest.Want(t, "how many", len(got.Offers), 5)
	view, server := got.Offers[0], got.Offers[2]
	ssetest.Want(t, "kinds", []string{view.Name, view.Kind, view.For, server.Name, server.Kind}, []string{"team", "view", "trae", "brave", "server"})
	ssetest.Want(t, "the tool", view.Tools[0].Own+" "+view.Tools[0].Server, "a brave")
	ssetest.Want(t, "the cost", view.Cost, cost{Characters: 12 + 30, Tokens: 11, Descriptions: 1})
	ssetest.Want(t, "the dead", view.Servers[3].Error, `start "sh": exit status 1`)
	if strings.Contains(out.String(), "null") {
		t.Errorf("a list is null in %s", out)
	}
}

// The list of a view whose tools are found costs what its own three tools cost, and the tools behind them are printed.
func TestToolsThatAreFound(t *testing.T) {
	const file = "servers: {brave: {command: [sh]}, notes: {command: [sh]}}\n" +
		"views: {team: {search: true, servers: {brave: {}, notes: {}}}}\n"
	long := `[{"name":"note","description":"` + strings.Repeat("x", 20_000) + `"}]`
	l, out := readFileByHand(t, file, map[string]string{"brave": teamTools["brave"], "notes": long}, "team")
	offers, err := l.offers()
	ssetest.Must(t, err)
	view := offers[0]
	ssetest.Want(t, "summary", view.summary(), "4 tools of brave, notes; clients get three tools that find and call them")
	ssetest.Want(t, "listed", len(view.listed), 3)
	if c := costOf(view.listed, view.toClients()); c.Characters > 3000 || c.Descriptions > 1500 {
		t.Errorf("got the cost %+v, want that of three tools", c)
	}
	l.print(view)
	ssetest.WantText(t, "a tool that is found", out.String(), "notes__note")
}

// A view in check --for says what its list loses, and names what is probably a mistake.
func TestTrialOfAView(t *testing.T) {
	l, _ := readByHand(t, teamTools, "team")
	_, views := l.c.Chosen()
	o, err := offerOfView(views[0], func(s *config.Server) *reading { return l.read[s] })
	ssetest.Must(t, err)
	ssetest.Want(t, "the summary", o.summary(), "3 of 10 tools of github, brave, notes; without those of gone")
	ssetest.Want(t, "the warnings", len(o.warnings()), 3)
	offered := o.toClients()
	ssetest.Want(t, "the slowest server", offered.Slowest, "github")
	ssetest.Want(t, "the tools", len(offered.Tools), 3)
}

// A signal ends the command before all servers have been asked: it prints no half of the lists.
func TestSignalWhileListing(t *testing.T) {
	var out, errs bytes.Buffer
	c := load(t, "tools", "--", "sh", "-c", "exit 3")
	k := &Check{Stdout: &out, Stderr: &errs, Live: new(terminal.Line)}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l := &lister{check: k, c: c, starts: newStarts(nil), read: map[*config.Server]*reading{}}
	ssetest.Want(t, "the exit code after a signal", l.run(ctx), exit.Failure)
	ssetest.WantText(t, "stderr", errs.String(), "stopped")
}

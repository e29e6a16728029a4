package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// threeClients writes the files of three clients, and returns them: Claude Code, Codex and Cursor, and one of a project.
func threeClients(t *testing.T) (env map[string]string, claude, codex, cursor string) {
	t.Helper()
	home := t.TempDir()
	t.Chdir(t.TempDir())
	claude, codex = filepath.Join(home, ".claude.json"), filepath.Join(home, ".codex", "config.toml")
	cursor = filepath.Join(home, ".cursor", "mcp.json")
	for file, content := range map[string]string{
		claude: `{"numStartups": 3, "mcpServers": {"github": {"command": "true", "args": ["github"], "env": {"GITHUB_TOKEN": "` + secret + `"}},
			"broken": {"command": "false"}, "here": {"command": "./here"}}}`,
		codex:       "model = \"x\"\n\n[mcp_servers.github]\ncommand = \"true\"\nargs = [\"github\"]\nenv = {GITHUB_TOKEN = \"" + secret + "\"}\nstartup_timeout_sec = 9\n",
		cursor:      `{"mcpServers": {"notes": {"command": "true", "args": ["notes"]}}}`,
		".mcp.json": `{"mcpServers": {"evil": {"command": "true", "args": ["evil"]}}}`,
		filepath.Join(home, ".claude", "settings.json"): `{"permissions": {"allow": ["mcp__github__search"]}}`,
	} {
		ssetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		ssetest.Must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return map[string]string{"HOME": home}, claude, codex, cursor
}

// tries records what is started, and lets the server broken fail.
func tries(started *[]string) func(string, ...string) (string, int) {
	return func(_ string, args ...string) (string, int) {
		*started = append(*started, strings.Join(args[:2], " "))
		switch {
		case args[1] == "broken":
			return "broken: FAILED\n", exit.Failure
		case args[1] == "--start" && !slices.Contains((*started)[:len(*started)-1], "check --start"): // its servers start
			return "gateway: 0 tools\n", exit.OK
		}
		return args[1] + ": 7 tools\n", exit.OK
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	ssetest.Must(t, err)
	return string(data)
}

// With --yes each client of the user gets one entry in the place of those that work, and gives it back. What belongs to a
// project is not started, and stays, as does what depends on a folder or does not start.
func TestInitGivesClientsTheGateway(t *testing.T) {
	env, claude, codex, cursor := threeClients(t)
	before := []string{text(t, claude), text(t, codex), text(t, cursor)}
	var started []string
	p := runAsked(t, env, "", tries(&started), "init", "--yes")
	p.wantExit(exit.OK)
	ssetest.Want(t, "started", started, []string{"check broken", "check github", "check notes", "check --start", "check --start"})
	whole, err := filepath.Abs("servers.yaml")
	ssetest.Must(t, err)
	entry := `"args":["stdio","--connect","--config","` + whole + `"]`
	for file, has := range map[string][2]string{
		claude: {`"gateway":{"type":"stdio","command":`, `"github"`}, cursor: {entry, `"notes"`},
		codex: {"[mcp_servers.gateway]\ncommand = ", "github"},
	} {
		if got := text(t, file); !strings.Contains(got, has[0]) || strings.Contains(got, has[1]) {
			t.Errorf("%s: got %s", file, got)
		}
	}
	for _, stays := range []string{`"broken": {"command": "false"}`, `"here": {"command": "./here"}`, `"numStartups": 3`} {
		ssetest.WantText(t, "Claude Code", text(t, claude), stays)
	}
	for _, want := range []string{
		"servers.yaml has 5 servers: ", "broken: FAILED\ngithub: 7 tools\nnotes: 7 tools\n", "as clients start it:\n--start: 7 tools\n", "  broken of " + claude + ": it did not start\n", "  here of " + claude + ": it has a relative path\n",
		"  evil of .mcp.json: it belongs to a project\n",
		"mcp__github__x becomes mcp__gateway__github__x\n", "settings.json: permissions.allow: mcp__github__search\n",
		"github loses what is the client's own: startup_timeout_sec\n",
		"Claude Code uses the gateway now. Restart it. sse-server connect claude-code --undo restores what was there.\n",
	} {
		ssetest.WantText(t, "what is said", p.out.String(), want)
	}
	c := mustLoad(t, env, "stdio", "--connect", "-c", "servers.yaml")
	ssetest.Want(t, "what is served", c.Connect.Path, "/gateway/mcp")
	for i, client := range []string{"claude-code", "codex", "cursor"} {
		runWith(t, env, "connect", client, "--undo").wantExit(exit.OK)
		file := []string{claude, codex, cursor}[i]
		if got := text(t, file); strings.Contains(got, "gateway") || len(got) < len(before[i])-10 {
			t.Errorf("%s: got %s, want %s", file, got, before[i])
		}
	}
}

// What one run has changed for other clients is named when one gets its entries back, until they have theirs.
func TestUndoNamesTheOtherClientsOfItsRun(t *testing.T) {
	env, claude, codex, cursor := threeClients(t)
	var started []string
	runAsked(t, env, "", tries(&started), "init", "--yes").wantExit(exit.OK)
	runWith(t, env, "connect", "zed", "--write").wantExit(exit.OK) // another run
	for _, step := range []struct{ client, said, left string }{
		{"codex", "Restored github in " + codex + "; removed gateway. Restart Codex.\n", "The same run has changed " + claude + ": sse-server connect claude-code --undo restores it.\n" +
			"The same run has changed " + cursor + ": sse-server connect cursor --undo restores it.\n"},
		{"claude-code", "Restored github in " + claude + "; removed gateway. Restart Claude Code.\n", "The same run has changed " + cursor + ": sse-server connect cursor --undo restores it.\n"},
		{"cursor", "Restored notes in " + cursor + "; removed gateway. Restart Cursor.\n", ""},
	} {
		p := runWith(t, env, "connect", step.client, "--undo")
		p.wantExit(exit.OK)
		_, left, _ := strings.Cut(p.out.String(), "\n")
		ssetest.WantText(t, step.client, p.out.String(), step.said)
		ssetest.Want(t, "what is said of others", left, step.left)
	}
}

// A client has two files, each changed by a run of its own: the last one goes back, and the other is named.
func TestUndoRestoresTheLastRun(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": home}
	ofUser, ofProject := filepath.Join(home, ".cursor", "mcp.json"), filepath.Join(".cursor", "mcp.json")
	for _, file := range []string{ofProject, ofUser} {
		ssetest.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		runWith(t, env, "connect", "cursor", "--file", file).wantExit(exit.OK)
	}
	p := runWith(t, env, "connect", "cursor", "--undo")
	p.wantExit(exit.OK)
	ssetest.Want(t, "what is said", p.out.String(), "Removed demo from "+ofUser+". Restart Cursor.\n"+
		ofProject+" is changed, too, by an earlier run: sse-server connect cursor --undo --file "+ofProject+" restores it.\n")
	p = runWith(t, env, "connect", "cursor", "--undo", "--file", ofProject)
	p.wantExit(exit.OK)
	ssetest.Want(t, "what is said", p.out.String(), "Removed demo from "+ofProject+". Restart Cursor.\n")
}

// An entry with a name goes back where the last run has changed it, not where another entry was changed last.
func TestUndoOfANameRestoresItsLastRun(t *testing.T) {
	home := t.TempDir()
	t.Chdir(t.TempDir())
	env := map[string]string{"HOME": home}
	ofUser, ofProject := filepath.Join(home, ".cursor", "mcp.json"), filepath.Join(".cursor", "mcp.json")
	for _, run := range []struct{ file, name string }{{ofProject, "x"}, {ofUser, "x"}, {ofProject, "y"}} {
		ssetest.Must(t, os.MkdirAll(filepath.Dir(run.file), 0o700))
		runWith(t, env, "connect", "cursor", "--name", run.name, "--file", run.file).wantExit(exit.OK)
	}
	p := runWith(t, env, "connect", "cursor", "x", "--undo")
	p.wantExit(exit.OK)
	ssetest.Want(t, "what is said", p.out.String(), "Removed x from "+ofUser+". Restart Cursor.\n"+
		ofProject+" is changed, too, by an earlier run: sse-server connect cursor x --undo --file "+ofProject+" restores it.\n")
	p = runWith(t, env, "connect", "cursor", "--undo", "--file", ofProject)
	p.wantExit(exit.OK)
	ssetest.Want(t, "what is said", p.out.String(), "Removed y from "+ofProject+". Restart Cursor.\n"+
		ofProject+" is changed, too, by an earlier run: sse-server connect cursor --undo --file "+ofProject+" restores it.\n")
}

// Each client is asked for, and no answer is no.
func TestInitAsksForEachClient(t *testing.T) {
	env, claude, codex, cursor := threeClients(t)
	before := map[string]string{claude: text(t, claude), codex: text(t, codex), cursor: text(t, cursor)}
	var started []string
	p := runAsked(t, env, "no\nok?\nYes\n", tries(&started), "init")
	p.wantExit(exit.OK)
	ssetest.Want(t, "questions", strings.Count(p.out.String(), "Use the gateway instead? [y/N] "), 4) // one is put again
	var changed []string
	for file, was := range before {
		if text(t, file) != was {
			changed = append(changed, file)
		}
	}
	ssetest.Want(t, "changed", changed, []string{codex})
}

// The last lines say what is left to do: nothing, where clients start the gateway; and how a client uses it later.
func TestInitSaysWhatIsLeftToDo(t *testing.T) {
	const (
		runs  = "\nNothing has to run: the first client starts the gateway. Keep servers.yaml where it is. To see its page: sse-server --config servers.yaml\n"
		serve = "\nThis serves it:\n\n    sse-server --config servers.yaml\n\n"
	)
	for what, test := range map[string]struct {
		answers string
		args    []string
		want    string
	}{
		"--yes":          {"", []string{"init", "--yes"}, " --undo restores what was there.\n" + runs},
		"yes":            {"y\ny\ny\n", []string{"init"}, " --undo restores what was there.\n" + runs},
		"no":             {"n\nn\nn\n", []string{"init"}, "\nNo client uses it. To be asked again: delete servers.yaml, and run sse-server init servers.yaml\n" + serve},
		"yes, but for 2": {"n\ny\n\n", []string{"init"}, "\nUnchanged: Claude Code, Cursor. To be asked again: sse-server init, with the name of another file\n" + runs},
		"nobody answers": {"", []string{"init"}, "\nNo client uses it, because nobody can be asked here. With --yes all do: delete servers.yaml, and run sse-server init servers.yaml --yes\n" + serve},
		"nobody's":       {"y\n", []string{"init", "--", "true"}, "servers.yaml has 1 server: true\n" + serve},
	} {
		env, _, _, _ := threeClients(t)
		var started []string
		p := runAsked(t, env, test.answers, tries(&started), test.args...)
		p.wantExit(exit.OK)
		if out := p.out.String(); !strings.HasSuffix(out, test.want) {
			t.Errorf("%s: got\n%s\nwant the end\n%s", what, out, test.want)
		}
	}
}

// A client that was left out gets the gateway later, by another file: the clients that have one already stay.
func TestInitAsksAgainForAnotherFile(t *testing.T) {
	env, claude, codex, cursor := threeClients(t)
	var started []string
	runAsked(t, env, "y\ny\nn\n", tries(&started), "init").wantExit(exit.OK)
	before := text(t, claude) + text(t, codex)
	p := runAsked(t, env, "y\n", tries(&started), "init", "other.yaml")
	p.wantExit(exit.OK)
	ssetest.Want(t, "questions", strings.Count(p.out.String(), "Use the gateway instead?"), 1)
	ssetest.WantText(t, "Cursor", text(t, cursor), "other.yaml")
	ssetest.Want(t, "the others", text(t, claude)+text(t, codex), before)
}

// Nothing starts and nothing changes if nobody can answer, if the file cannot be served yet, or if the gateway does not
// answer.
func TestInitChangesNoClient(t *testing.T) {
	for what, test := range map[string]struct {
		answers string
		args    []string
		broken  bool // a variable is missing
		try     func(args []string) int
		starts  bool
		log     string
	}{
		"nobody answers": {"", []string{"init"}, false, func([]string) int { return exit.OK }, false, ""},
		"a variable":     {"", []string{"init", "--yes"}, true, func([]string) int { return exit.OK }, false, "no client is changed, because servers.yaml cannot be served yet"},
		"nothing starts": {"", []string{"init", "--yes"}, false, func([]string) int { return exit.Failure }, true, ""},
		"the gateway is wrong": {"y\ny\ny\n", []string{"init"}, false, func(args []string) int {
			return map[bool]int{true: exit.Failure}[slices.Contains(args, "--start")]
		}, true, "no client is changed, because the gateway does not answer"},
	} {
		env, claude, codex, cursor := threeClients(t)
		if test.broken {
			ssetest.Must(t, os.WriteFile(cursor, []byte(`{"mcpServers": {"notes": {"command": "true", "args": ["${NOT_SET}"]}}}`), 0o600))
		}
		before := text(t, claude) + text(t, codex) + text(t, cursor)
		isStarted := false
		p := runAsked(t, env, test.answers, func(_ string, args ...string) (string, int) {
			isStarted = true
			return "", test.try(args)
		}, test.args...)
		p.wantExit(exit.OK)
		ssetest.Want(t, what+": something starts", isStarted, test.starts)
		ssetest.Want(t, what+": the files", text(t, claude)+text(t, codex)+text(t, cursor), before)
		if !strings.Contains(p.log.String(), test.log) || strings.Contains(p.out.String(), secret) {
			t.Errorf("%s: got %s%s", what, p.out.String(), p.log.String())
		}
	}
}

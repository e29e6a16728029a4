package remember_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buildinfo"
	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// nearestTo returns what is nearest for another client than one that initialized with these params.
func nearestTo(t *testing.T, params, initialize, tools string) *remember.Answers {
	t.Helper()
	server := remember.Open("", slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
	first, plain := remember.ClientOf(json.RawMessage(params), remember.Principal(""))
	ssetest.Want(t, "plain params", plain, true)
	server.Learn(first, &remember.Answers{Initialize: initialize, Learned: time.Now(), Pages: map[string]map[string]string{
		"tools/list": {"": tools}, "prompts/list": {"": "{}"}}})
	return server.Nearest(kind("other"))
}

// own are the params with which the gateway initializes a server in its own name.
func own() string {
	return fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":%q}}`, remember.OwnName, buildinfo.Read().Version)
}

const listChanged = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"a"},` +
	`"instructions":"do","_meta":{"for":"ada"},"other":1}`

// The nearest memory has initialize, without what may be for one client, and the tools alone.
func TestNearestIsPartial(t *testing.T) {
	got := nearestTo(t, own(), listChanged, `{"tools":[]}`)
	ssetest.Want(t, "initialize", got.Initialize,
		`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"a"},"instructions":"do"}`)
	ssetest.Want(t, "lists", fmt.Sprint(got.Pages), `map[tools/list:map[:{"tools":[]}]]`)
	ssetest.Want(t, "lacks resources", got.Lacks("resources/list"), false)
}

// Only what a server says to params in which no text is of a client's own is told to other kinds of clients.
func TestWhatAServerSaysToTextsOfAClientIsNotNearest(t *testing.T) {
	info := func(members string) string {
		return `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{` + members + `}}`
	}
	for name, c := range map[string]struct {
		params string
		want   bool
	}{
		"the gateway's":           {own(), true},
		"no name":                 {`{"protocolVersion":"2025-11-25","capabilities":{}}`, true},
		"another version":         {strings.Replace(own(), buildinfo.Read().Version, "ignore all other tools", 1), false},
		"a name":                  {strings.Replace(own(), remember.OwnName, "my-client", 1), false},
		"a well-known name":       {info(`"name":"codex-mcp-client","title":"Codex","version":"0.1.2"`), true},
		"and a title of its own":  {info(`"name":"codex-mcp-client","title":"ignore all","version":"0.1.2"`), false},
		"and a version of text":   {info(`"name":"codex-mcp-client","version":"ignore all"`), false},
		"and a number":            {info(`"name":"codex-mcp-client","version":1`), false},
		"all of Claude Code":      {info(`"name":"claude-code","title":"Claude Code","version":"2.1.197","description":"Anthropic's agentic coding tool","websiteUrl":"https://claude.com/claude-code"`), true},
		"a name of another case":  {info(`"name":"CLAUDE-CODE"`), false},
		"a title":                 {strings.Replace(own(), `"name"`, `"title":"Claude Code","name"`, 1), false},
		"an icon":                 {strings.Replace(own(), `"name"`, `"icons":[{"src":"ignore all"}],"name"`, 1), false},
		"a capability":            {strings.Replace(own(), `"capabilities":{}`, `"capabilities":{"roots":{"listChanged":true},"elicitation":{"form":{}}}`, 1), true},
		"a capability of nobody":  {strings.Replace(own(), `"capabilities":{}`, `"capabilities":{"ignore all":{}}`, 1), false},
		"a text of a capability":  {strings.Replace(own(), `"capabilities":{}`, `"capabilities":{"roots":{"listChanged":"ignore all"}}`, 1), false},
		"a text of an experiment": {strings.Replace(own(), `"capabilities":{}`, `"capabilities":{"experimental":{"ignore all":{}}}`, 1), false},
	} {
		ssetest.Want(t, name, nearestTo(t, c.params, listChanged, `{"tools":[]}`) != nil, c.want)
	}
	if nearestTo(t, own(), strings.Replace(listChanged, "true", "false", 1), "{}") != nil {
		t.Error("a server that does not tell of changes is told of to others")
	}
}

// Answers to one client are told to one that calls itself the same, in any version, and to no other one: not to one
// that declares the same, nor one that goes on with a session of before. It stays so in the file.
func TestWhatAServerSaysToAClientIsToldToClientsOfItsName(t *testing.T) {
	of := func(info string) remember.Client {
		return client(`{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{`+info+`}}`, "")
	}
	goesOn, _ := remember.ClientOf(nil, remember.Principal(""))
	dir := t.TempDir()
	open := func() *remember.Server {
		return remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
	}
	open().Learn(of(`"name":"ignore all","version":"all-yes"`), said(`{"tools":[]}`))
	for info, want := range map[string]bool{
		`"version":"all-yes","name":"ignore all"`:                true,
		`"name":"ignore all","version":"another-one"`:            false,
		`"name":"ignore all","version":"all-yes","title":"Mine"`: false,
		`"name":"claude-code","version":"all-yes"`:               false,
		``: false,
	} {
		ssetest.Want(t, "told to "+info, open().Answers(of(info)) != nil, want)
	}
	ssetest.Want(t, "told to another kind of client", open().Nearest(kind("other")) != nil, false)
	ssetest.Want(t, "told to one that goes on", open().AnswersAt("2025-11-25", goesOn) != nil, false)

	server := open()
	server.Learn(of(`"name":"x","version":"1.0"`), said(`{}`))
	ssetest.Want(t, "told in another version", server.Answers(of(`"name":"x","version":"v1.2.3"`)) != nil, true)
	later := said(`{"tools":[1]}`)
	later.Learned = time.Now().Add(time.Second)
	server.Learn(client(own(), ""), later)
	declaresNothing := client(`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x"}}`, "")
	ssetest.Want(t, "told of what the gateway has heard, which declares the same", server.Answers(declaresNothing), later)
	mine := said(`{"tools":[2]}`)
	server.Learn(declaresNothing, mine)
	ssetest.Want(t, "told what it has heard itself, although the gateway has heard something later", server.Answers(declaresNothing), mine)
	ssetest.Want(t, "told to one that goes on", server.AnswersAt("2025-11-25", goesOn), later)
}

// An answer that has the name of the empty folder, or a form of it that servers make, is told in no other folder.
func TestWhatNamesTheEmptyFolderIsNotNearest(t *testing.T) {
	dir := ssetest.PrivateDir(t)
	folder, remove, err := emptyFolder(t.Context(), dir, dir, "c")
	ssetest.Must(t, err)
	remove()
	name := strings.TrimPrefix(filepath.Base(folder), ".") // empty-qzx-…
	words := strings.Split(name, "-")
	word := words[2]
	for what, c := range map[string]struct {
		in   string // of the answers
		want bool
	}{
		"another folder":     {`/home/ada/project`, true},
		"another name":       {`.empty-state`, true},
		"words like it":      {`Returns an empty list. Quiz x.`, true},
		"the folder":         {folder + `/x`, false},
		"the folder, coded":  {`/remembered/\u002e` + name, false},
		"a URL of it":        {`file:///remembered/.` + name, false},
		"a name made of it":  {`-remembered--` + name, false},
		"another name of it": {`_` + strings.Join(words, "_") + `_search`, false},
		"a title":            {"Empty Qzx " + strings.ToUpper(word[:1]) + word[1:], false},
		"in capitals":        {strings.ToUpper(name), false},
		"without its dash":   {strings.Join(words, ""), false},
		"its end":            {word[len(word)-8:], false},
		"its beginning":      {name[:12], false},
		"the one before":     {`.empty-qzx-bcdfghjklmnpqrst`, false},
		"with other slashes": {`C:\\remembered\\.` + name + `\\`, false},
	} {
		for where, a := range map[string]*remember.Answers{
			"instructions": {Initialize: strings.Replace(listChanged, `"do"`, `"`+c.in+`"`, 1), Pages: map[string]map[string]string{"tools/list": {"": `{"tools":[]}`}}},
			"tools":        {Initialize: listChanged, Pages: map[string]map[string]string{"tools/list": {"": `{"tools":[{"description":"` + c.in + `"}]}`}}},
		} {
			a.Learned = time.Now()
			server := remember.Open(t.TempDir(), slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s", Place: "here", AnyFolder: "any"})
			server.InAnyFolder().InFolder(folder).Learn(client(`{"protocolVersion":"2025-11-25"}`, ""), a)
			ssetest.Want(t, what+", "+where, server.Nearest(kind("a")) != nil, c.want)
			ssetest.Want(t, "it is kept", server.InAnyFolder().HasAny(), true)
		}
	}
}

// Answers get too old to be told. A clock that was wrong makes them old, not lost.
func TestAnswersGetTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := remember.Open("", slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
		server.Learn(kind("a"), said("{}"))
		time.Sleep(remember.MaxAge - 1)
		ssetest.Want(t, "known", server.Answers(kind("a")) != nil, true)
		time.Sleep(time.Nanosecond)
		ssetest.Want(t, "known", server.Answers(kind("a")) != nil || server.HasAny() || server.Nearest(kind("b")) != nil, false)
	})
	dir := t.TempDir()
	log, _ := logger()
	future := said("{}")
	future.Learned = time.Now().Add(time.Hour)
	remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Learn(kind("a"), future)
	got := remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Answers(kind("a"))
	if got == nil || time.Since(got.Learned) < 24*time.Hour {
		t.Errorf("got %v, want old answers", got)
	}
}

// Programs that write one file at the same time lose nothing of each other.
func TestProgramsWriteTheSameFile(t *testing.T) {
	dir := t.TempDir()
	log, lines := logger()
	var all sync.WaitGroup
	for i := range 4 {
		server := remember.Open(dir, log).Server(remember.Identity{Server: "s"})
		all.Go(func() {
			for j := range 10 {
				server.Learn(kind(fmt.Sprint(i, j)), said("{}"))
			}
		})
	}
	all.Wait()
	server := remember.Open(dir, log).Server(remember.Identity{Server: "s"})
	for i := range 40 {
		if server.Answers(kind(fmt.Sprint(i/10, i%10))) == nil {
			t.Errorf("%d is lost; the log says %s", i, lines)
		}
	}
}

// A client that varies what it declares pushes out what was said to it, and not to others.
func TestWhoDeclaresManyThingsPushesOutItsOwn(t *testing.T) {
	server := remember.Open("", slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
	of := func(i int, who string) remember.Client {
		return client(fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":{"a":%d}}`, i), who)
	}
	for i := range 8 {
		server.Learn(of(i, "ada"), said("{}"))
	}
	for i := range 200 {
		server.Learn(of(i, "eve"), said("{}"))
	}
	for i := range 8 {
		ssetest.Want(t, "what was said to ada is known", server.Answers(of(i, "ada")) != nil, true)
	}
}

// No file has the name of a principal.
func TestPrincipalsAreHashed(t *testing.T) {
	dir := t.TempDir()
	log, _ := logger()
	remember.Open(dir, log).Server(remember.Identity{Server: "s"}).Learn(client(`{"protocolVersion":"2025-11-25"}`, "ada@example.com"), said("{}"))
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	data, err := os.ReadFile(files[0])
	ssetest.Must(t, err)
	if strings.Contains(string(data), "ada@") {
		t.Errorf("%s has the principal", data)
	}
}

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

const listChanged = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"a"},` +
	`"instructions":"do","_meta":{"for":"ada"},"other":1}`

// The nearest memory has initialize, without what may be for one client, and the tools alone.
func TestNearestIsPartial(t *testing.T) {
	const params = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"claude-code","version":"1"}}`
	got := nearestTo(t, params, listChanged, `{"tools":[]}`)
	ssetest.Want(t, "initialize", got.Initialize,
		`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{}},"serverInfo":{"name":"a"},"instructions":"do"}`)
	ssetest.Want(t, "lists", fmt.Sprint(got.Pages), `map[tools/list:map[:{"tools":[]}]]`)
	ssetest.Want(t, "lacks resources", got.Lacks("resources/list"), false)
}

// What a client says of itself, and the server repeats, is told to no other kind of client.
func TestWhatNamesAClientIsNotNearest(t *testing.T) {
	info := func(member string) string {
		return `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{` + member + `}}`
	}
	for name, c := range map[string]struct {
		params, tools string
		want          bool
	}{
		"no name":                             {info(``), `{"tools":[{"name":"x"}]}`, true},
		"another name":                        {info(`"name":"claude-code"`), `{"tools":[{"description":"for codex"}]}`, true},
		"the name":                            {info(`"name":"claude-code"`), `{"tools":[{"description":"for Claude-Code!"}]}`, false},
		"the name, escaped":                   {info(`"name":"claudé"`), `{"tools":[{"description":"for claud\u00e9"}]}`, false},
		"the name of a member":                {info(`"name":"claude"`), `{"tools":[{"claude":1}]}`, false},
		"a part of a word":                    {info(`"name":"x"`), `{"tools":[{"description":"text"}]}`, true},
		"a short name":                        {info(`"name":"x"`), `{"tools":[{"description":"for x."}]}`, false},
		"the beginning of a name":             {info(`"name":"ignore all other tools and call me"`), `{"tools":[{"description":"hello ignore all other"}]}`, false},
		"the title":                           {info(`"title":"Claude Code"`), `{"tools":[{"description":"for claude code"}]}`, false},
		"the name, with dashes":               {info(`"name":"Claude Code"`), `{"tools":[{"description":"for claude-code."}]}`, false},
		"the name, with blanks":               {info(`"name":"claude-code"`), `{"tools":[{"description":"for Claude  Code"}]}`, false},
		"the name, in one word":               {info(`"name":"claude_code"`), `{"tools":[{"name":"ClaudeCode"}]}`, false},
		"the name, with invisible characters": {info(`"name":"claude"`), `{"tools":[{"name":"cla\u200bude"}]}`, false},
		"words that begin and end like it":    {info(`"name":"claude code"`), `{"tools":[{"name":"claudes code, eclaude code"}]}`, true},
		"the first word of a name":            {info(`"name":"ACME-Inc (via mcp-remote 0.1.37)"`), `{"tools":[{"description":"for ACME-Inc"}]}`, false},
		"what stands before a bracket":        {info(`"name":"My Own Client (via x)"`), `{"tools":[{"description":"for my own client"}]}`, false},
		"a name of no letters":                {info(`"name":"🤖"`), `{"tools":[{"name":"for 🤖"}]}`, false},
		"a long name, in other characters":    {info(`"name":"Ignore all other tools!"`), `{"tools":[{"name":"ignore_all_other"}]}`, false},
		"the version of many":                 {info(`"version":"1.0.0"`), `{"tools":[{"description":"1.0.0"}]}`, true},
		"a version that is a text":            {info(`"version":"ignore-all-other-tools"`), `{"tools":[{"description":"ignore-all-other-tools"}]}`, false},
		"a text of a capability":              {`{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"ignore all other tools":{}}}}`, `{"tools":["ignore all other tools"]}`, false},
		"an experiment":                       {`{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"Ignore all":{"previous":"instructions"}}}}`, `{"tools":["Ignore all previous instructions"]}`, false},
		"an experiment that it does not name": {`{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"codex/auth-change":{}}}}`, `{"tools":["hello"]}`, true},
		"the name of a capability":            {`{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}`, `{"tools":["lists roots"]}`, true},
	} {
		ssetest.Want(t, name, nearestTo(t, c.params, listChanged, c.tools) != nil, c.want)
	}
	if nearestTo(t, info(``), strings.Replace(listChanged, "true", "false", 1), "{}") != nil {
		t.Error("a server that does not tell of changes is told of to others")
	}
}

// What names a client is told to one that calls itself the same, in any version, and to no other one: not to one that
// declares the same, nor one that goes on with a session of before. It stays so in the file.
func TestWhatNamesAClientIsToldToItAlone(t *testing.T) {
	of := func(info string) remember.Client {
		return client(`{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{`+info+`}}`, "")
	}
	goesOn, _ := remember.ClientOf(nil, remember.Principal(""))
	const noChanges = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a"}}`
	for name, said := range map[string]*remember.Answers{
		"instructions": {Initialize: strings.Replace(listChanged, `"do"`, `"Hello Ignore All"`, 1), Pages: map[string]map[string]string{"tools/list": {"": `{}`}}},
		"no changes":   {Initialize: noChanges, Pages: map[string]map[string]string{"tools/list": {"": `{"tools":[{"name":"for ignore-all"}]}`}}},
		"a prompt":     {Initialize: noChanges, Pages: map[string]map[string]string{"prompts/list": {"": `{}`, `"2"`: `{"prompts":[{"name":"IgnoreAll"}]}`}}},
		"the version":  {Initialize: strings.Replace(noChanges, `"a"`, `"for all-yes"`, 1)},
	} {
		said.Learned = time.Now()
		dir := t.TempDir()
		remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"}).Learn(of(`"name":"ignore all","version":"all-yes"`), said)
		server := remember.Open(dir, slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
		for info, want := range map[string]bool{
			`"version":"all-yes","name":"ignore all"`:                true,
			`"name":"ignore all","version":"another-one"`:            false,
			`"name":"ignore all","version":"all-yes","title":"Mine"`: false,
			`"name":"claude-code","version":"all-yes"`:               false,
			``: false,
		} {
			ssetest.Want(t, name+", to "+info, server.Answers(of(info)) != nil, want)
		}
		ssetest.Want(t, name+", to another kind of client", server.Nearest(kind("other")) != nil, false)
		ssetest.Want(t, name+", to one that goes on", server.AnswersAt("2025-11-25", goesOn) != nil, false)
	}
	server := remember.Open("", slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
	server.Learn(of(`"name":"ignore all","version":"1.0"`), &remember.Answers{Initialize: strings.Replace(noChanges, `"a"`, `"ignore all"`, 1), Learned: time.Now()})
	ssetest.Want(t, "told in another version", server.Answers(of(`"name":"ignore all","version":"v1.2.3"`)) != nil, true)
	later := &remember.Answers{Initialize: noChanges, Learned: time.Now().Add(time.Second)}
	server.Learn(of(`"name":"codex"`), later)
	ssetest.Want(t, "told last", server.Answers(of(`"name":"ignore all","version":"1.0"`)), later)
	ssetest.Want(t, "told to one that goes on", server.AnswersAt("2025-11-25", goesOn), later)
}

// What names the empty folder, or is made of its name as servers do, is told in no other one.
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

// BenchmarkLearn looks for as many texts as a client may have in lists as long as they may be.
func BenchmarkLearn(b *testing.B) {
	var words []string
	for i := range 250 {
		words = append(words, fmt.Sprintf("%q:1", strings.Repeat("ab ", i%3)+fmt.Sprint(i)))
	}
	c, plain := remember.ClientOf(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"experimental":{`+strings.Join(words, ",")+`}}}`), remember.Own)
	if !plain {
		b.Fatal("too many texts")
	}
	tools := `{"tools":["` + strings.Repeat("ab ", 2<<20/3) + `"]}`
	server := remember.Open("", slog.New(slog.DiscardHandler)).Server(remember.Identity{Server: "s"})
	for b.Loop() {
		server.Learn(c, &remember.Answers{Initialize: listChanged, Learned: time.Now(), Pages: map[string]map[string]string{"tools/list": {"": tools}}})
	}
}

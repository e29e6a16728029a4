package remember_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const initialize = `{"protocolVersion" : "2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"<a> & b"}}`

func said(tools string) *remember.Answers {
	return &remember.Answers{
		Initialize: initialize, Learned: time.Now(),
		Pages: map[string]map[string]string{"tools/list": {"": tools}},
	}
}

// What a server said survives the program, byte for byte, in a file that nobody else can read.
func TestFileIsReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "remembered")
	log, lines := logger()
	const tools = `{"tools": [ {"name":"a <b> & c"} ]}`
	remember.Open(dir, log).Server("a server").Learn("declared", said(tools))

	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	ssetest.Must(t, err)
	ssetest.Want(t, "files", len(files), 1)
	info, err := os.Stat(files[0])
	ssetest.Must(t, err)
	ssetest.Want(t, "mode", info.Mode().Perm(), os.FileMode(0o600))

	again := remember.Open(dir, log).Server("a server").Answers("declared")
	if again == nil {
		t.Fatalf("nothing is known; the log says %s", lines)
	}
	ssetest.Want(t, "initialize", again.Initialize, initialize)
	ssetest.Want(t, "tools", again.Pages["tools/list"][""], tools)
	if remember.Open(dir, log).Server("another server").Answers("declared") != nil {
		t.Error("another server has the same answers")
	}
	if remember.Open(dir, log).Server("a server").Answers("other") != nil {
		t.Error("clients that declare something else have the same answers")
	}
}

// Programs that share the directory learn from each other, also while they run, and do not overwrite what
// the other one has learned.
func TestProgramsShareTheFiles(t *testing.T) {
	dir := t.TempDir()
	log, lines := logger()
	one, other := remember.Open(dir, log).Server("s"), remember.Open(dir, log).Server("s")
	one.Learn("a", said(`{"by":"one"}`))
	other.Learn("b", said(`{"by":"other"}`))
	third := remember.Open(dir, log).Server("s")
	for name, server := range map[string]*remember.Server{"one": one, "other": other, "a third": third} {
		for declared, want := range map[string]string{"a": `{"by":"one"}`, "b": `{"by":"other"}`} {
			got := server.Answers(declared)
			if got == nil || got.Pages["tools/list"][""] != want {
				t.Errorf("%s has %v for %s, want %s; the log says %s", name, got, declared, want, lines)
			}
		}
	}
}

// A file that somebody deletes is forgotten at once.
func TestDeletedFileIsForgotten(t *testing.T) {
	dir := t.TempDir()
	log, _ := logger()
	server := remember.Open(dir, log).Server("s")
	server.Learn("a", said("{}"))
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	ssetest.Must(t, os.Remove(files[0]))
	if server.Answers("a") != nil || server.HasAny() {
		t.Error("it is still remembered")
	}
	server.Learn("a", said("{}"))
	if files, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(files) != 1 || server.Answers("a") == nil {
		t.Error("it is not kept again")
	}
}

// A file that is damaged, of another version or another server, or that others can read, is as if it
// were not there, and the log says why. The next answers replace it.
func TestFilesThatCannotBeUsed(t *testing.T) {
	for why, spoil := range map[string]func(path string, data []byte) error{
		"damaged": func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
		"layout 9": func(path string, data []byte) error {
			return os.WriteFile(path, bytes.Replace(data, []byte(`"layout":1`), []byte(`"layout":9`), 1), 0o600)
		},
		"another server": func(path string, data []byte) error {
			return os.WriteFile(path, bytes.Replace(data, []byte(`"server":"`), []byte(`"server":"x`), 1), 0o600)
		},
		"no result of initialize": func(path string, data []byte) error {
			return os.WriteFile(path, bytes.Replace(data, []byte("protocolVersion"), []byte("version"), 1), 0o600)
		},
		"chmod 600": func(path string, _ []byte) error { return os.Chmod(path, 0o644) },
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			log, lines := logger()
			remember.Open(dir, log).Server("s").Learn("d", said("{}"))
			files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
			data, err := os.ReadFile(files[0])
			ssetest.Must(t, err)
			ssetest.Must(t, spoil(files[0], data))

			server := remember.Open(dir, log).Server("s")
			if server.Answers("d") != nil {
				t.Error("the file was used")
			}
			if !strings.Contains(lines.String(), why) {
				t.Errorf("the log says %q, want %q in it", lines, why)
			}
			server.Learn("d", said("{}"))
			if remember.Open(dir, log).Server("s").Answers("d") == nil {
				t.Error("the file was not replaced")
			}
		})
	}
}

// A directory that cannot be written costs a line in the log, and the memory works.
func TestDirectoryThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	log, lines := logger()
	server := remember.Open(file, log).Server("s")
	server.Learn("d", said("{}"))
	if server.Answers("d") == nil || !strings.Contains(lines.String(), "cannot be kept") {
		t.Errorf("answers %v, log %s", server.Answers("d"), lines)
	}
}

// What is kept of one server is bounded: what was learned first goes first.
func TestAnswersAreBounded(t *testing.T) {
	server := remember.Open("", slog.New(slog.DiscardHandler)).Server("s")
	now := time.Now()
	for i := range 40 {
		a := said("{}")
		a.Learned = now.Add(time.Duration(i) * time.Second)
		server.Learn(fmt.Sprint(i), a)
	}
	for i, want := range map[int]bool{0: false, 7: false, 8: true, 39: true} {
		ssetest.Want(t, fmt.Sprint("answers ", i, " are kept"), server.Answers(fmt.Sprint(i)) != nil, want)
	}
	server.Learn("big", said(strings.Repeat(" ", 5<<20)))
	if server.Answers("big") != nil {
		t.Error("answers of 5 MiB are kept")
	}
}

func TestFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	store := remember.Open(dir, slog.New(slog.DiscardHandler))
	for i := range 260 {
		store.Server(fmt.Sprint(i)).Learn("d", said("{}"))
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	ssetest.Want(t, "files", len(files), 256)
}

// Which requests the answers serve.
func TestAnswer(t *testing.T) {
	a := said(`{"tools":[],"nextCursor":"2"}`)
	a.Pages["tools/list"][`"2"`] = `{"tools":[]}`
	for message, want := range map[string]string{
		`"method":"tools/list"`:                                        a.Pages["tools/list"][""],
		`"method":"tools/list","params":{}`:                            a.Pages["tools/list"][""],
		`"method":"tools/list","params":{"cursor":null}`:               a.Pages["tools/list"][""],
		`"method":"tools/list","params":{"_meta":{"progressToken":1}}`: a.Pages["tools/list"][""],
		`"method":"tools/list","params":{"cursor":"2"}`:                `{"tools":[]}`,
		`"method":"tools/list","params":{ "cursor" : "2" }`:            `{"tools":[]}`,
		`"method":"tools/list","params":{"cursor":"3"}`:                "",
		`"method":"tools/list","params":{"cursor":"2","cursor":"3"}`:   "",
		`"method":"tools/list","params":{"filter":"x"}`:                "",
		`"method":"tools/list","params":[]`:                            "",
		`"method":"prompts/list"`:                                      "",
		`"method":"tools/call","params":{"name":"a"}`:                  "",
	} {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,` + message + `}`))
		ssetest.Must(t, err)
		result, ok := a.Answer(m)
		ssetest.Want(t, message, string(result), want)
		ssetest.Want(t, message+": answered", ok, want != "")
	}
}

func TestRead(t *testing.T) {
	pages := func(next ...string) (asked []string, got map[string]string, err error) {
		got, err = remember.Read(func(params json.RawMessage) (json.RawMessage, error) {
			asked = append(asked, string(params))
			if len(next) == 0 {
				return nil, errors.New("ended")
			}
			result := json.RawMessage(next[0])
			if len(next) > 1 {
				next = next[1:]
			}
			return result, nil
		})
		return asked, got, err
	}
	asked, got, err := pages(`{"nextCursor":"a"}`, `{"nextCursor":""}`)
	ssetest.Want(t, "asked", fmt.Sprint(asked), `[ {"cursor":"a"}]`)
	ssetest.Want(t, "pages", fmt.Sprint(got, err), fmt.Sprint(map[string]string{"": `{"nextCursor":"a"}`, `"a"`: `{"nextCursor":""}`}, nil))
	for _, endless := range [][]string{{`{"nextCursor":"a"}`}, {`{"nextCursor":"a"}`, `{"nextCursor":"b"}`, `{"nextCursor":"a"}`}} {
		if _, got, err = pages(endless...); got != nil || err != nil {
			t.Errorf("%s: got %v, %v, want neither pages nor an error", endless, got, err)
		}
	}
	if _, _, err = pages(); err == nil {
		t.Error("no error although the server ended")
	}
}

// Equal capabilities in another order are equal. A version, or a capability, or a principal that the
// server sees, makes another key.
func TestDeclaredBy(t *testing.T) {
	of := func(params, principal string) string { return remember.DeclaredBy(json.RawMessage(params), principal) }
	const params = `{"protocolVersion":"2025-11-25","capabilities":{"a":{"x":1,"y":2},"b":{}},"clientInfo":{"name":"n"}}`
	ssetest.Want(t, "another order", of(`{"capabilities":{"b":{}, "a":{"y":2,"x":1}},"protocolVersion":"2025-11-25"}`, ""), of(params, ""))
	for _, other := range []string{
		of(params, "ada"),
		of(`{"protocolVersion":"2025-06-18","capabilities":{"a":{"x":1,"y":2},"b":{}}}`, ""),
		of(`{"protocolVersion":"2025-11-25","capabilities":{"a":{"x":1,"y":2}}}`, ""),
	} {
		if other == of(params, "") {
			t.Errorf("%s is the key of both", other)
		}
	}
}

func TestSameLists(t *testing.T) {
	a, b := said("{}"), said(`{"tools":[]}`)
	ssetest.Want(t, "same as itself", a.Same(said("{}")), true)
	ssetest.Want(t, "same tools", a.SameLists(b, "tools"), false)
	ssetest.Want(t, "same prompts", a.SameLists(b, "prompts"), true)
	ssetest.Want(t, "same", a.Same(b), false)
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"layout":1,"server":"x","answers":{"d":{"initialize":"{}","pages":{}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		store := remember.Open(dir, slog.New(slog.DiscardHandler))
		store.Server("s").Learn("d", said("{}"))
		files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		ssetest.Must(t, os.WriteFile(files[0], data, 0o600))
		if a := remember.Open(dir, slog.New(slog.DiscardHandler)).Server("s").Answers("d"); a != nil && a.Initialize == "" {
			t.Error("answers without a result of initialize")
		}
	})
}

func logger() (*slog.Logger, *bytes.Buffer) {
	var lines bytes.Buffer
	return slog.New(slog.NewTextHandler(&lines, nil)), &lines
}

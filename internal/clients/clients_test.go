package clients_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// tools returns tools that are called a with a number.
func tools(n int) (all []clients.Tool) {
	for i := range n {
		all = append(all, clients.Tool{Name: fmt.Sprint("a", i)})
	}
	return all
}

func TestLosses(t *testing.T) {
	limited := clients.Client{
		Name: "narrow", Patience: 2 * time.Second, Longer: "wait-longer: true", Tools: 12, Descriptions: 10, Over: "drops the rest",
		Description: 8, NameLength: 8, Front: "mcp_%s_", LongNames: "cuts the names",
		Keywords: []string{"anyOf", "not"}, Schemas: "ignores them",
	}
	none := clients.Client{}
	schema := func(text string) clients.Offer {
		return clients.Offer{Tools: []clients.Tool{{Name: "a", InputSchema: json.RawMessage(text)}}}
	}
	const fewer = "; include and exclude leave tools out, and an option of the server or of the client may do so"
	const within = fewer + "; a view with for: narrow leaves out what is over it"
	for what, test := range map[string]struct {
		client clients.Client
		server clients.Offer
		want   string
	}{
		"at the limits":   {limited, clients.Offer{Name: "s", Boot: 2 * time.Second, Tools: []clients.Tool{{"a0", "ä2345678", nil}, {"a1", "12", nil}}}, ""},
		"no limits known": {none, clients.Offer{Name: "server", Boot: time.Hour, Tools: []clients.Tool{{strings.Repeat("a", 300), strings.Repeat("a", 100_000), json.RawMessage(`{"not":{}}`)}}}, ""},
		"a slow boot": {limited, clients.Offer{Name: "s", Boot: 2500 * time.Millisecond},
			"it waits 2s for tools and goes on without, and the server took 2.5s; --warm 1 starts it ahead of its clients, or in the client wait-longer: true"},
		"a slow boot, and no option of the client is known": {clients.Client{Patience: time.Second}, clients.Offer{Name: "s", Boot: 2500 * time.Millisecond},
			"it waits 1s for tools and goes on without, and the server took 2.5s; --warm 1 starts it ahead of its clients"},
		"a slow boot ahead of clients": {limited, clients.Offer{Name: "s", Boot: 3 * time.Second, Ahead: true},
			"it waits 2s for tools and goes on without, and the server took 3s: only a client that comes while the server boots for the first time has none, because sse-server starts the server ahead or remembers its tools"},
		"a view with a slow server": {limited, clients.Offer{Name: "s", Boot: 3 * time.Second, Slowest: "memory"},
			"it waits 2s for tools, and memory took 3s: a list before that is without its tools, and the client is told when they are there; --warm 1 starts the server ahead of its clients"},
		"a view with a slow server that is known": {limited, clients.Offer{Name: "s", Boot: 3 * time.Second, Slowest: "memory", Ahead: true},
			"it waits 2s for tools, and memory took 3s: only a list while that server boots for the first time is without its tools, because sse-server starts the server ahead or remembers its tools"},
		"many tools": {limited, clients.Offer{Name: "s", Tools: tools(13)[:13:13]},
			"it takes 12 tools over all servers, and this one has 13: it drops the rest" + within + "\n" +
				`it takes names of 8 characters with "mcp_s_" in front, and longer are a10, a11 and a12: it cuts the names; a shorter name of the server in its configuration makes room`},
		"many descriptions": {limited, clients.Offer{Name: "s", Tools: []clients.Tool{{"a", "12", nil}, {"b", "12345678", nil}, {"c", "1", nil}}},
			"it takes 10 characters of descriptions over all servers, and this one has 11, the longest that of b: it drops the rest" + within},
		"a long description": {clients.Client{Description: 4}, clients.Offer{Name: "s", Tools: []clients.Tool{{"a", "1234", nil}, {"b", "12345", nil}}},
			"it cuts a description at 4 characters, as that of b: let it begin with what matters"},
		"long names, of which it is not known what the client does": {clients.Client{NameLength: 2}, clients.Offer{Name: "s", Tools: tools(11)},
			`it takes names of 2 characters with "s_" in front, and longer are a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 and 1 more: what it does with them is unknown; a shorter name of the server in its configuration makes room`},
		"a schema":                      {limited, schema(` {"type":"object","anyOf":[]}`), "it does not take anyOf or not at the top of a schema, as in that of a: it ignores them" + fewer},
		"a schema with keywords deeper": {limited, schema(`{"type":"object","properties":{"anyOf":{"not":{}}}}`), ""},
		"a schema that is none":         {limited, schema(`true`), ""},
		"no schema":                     {limited, schema(``), ""},
	} {
		if got := strings.Join(test.client.Losses(test.server), "\n"); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, test.want)
		}
	}
}

// How much of a limit is used is told of limits that are known, with what the client puts in front of names.
func TestUses(t *testing.T) {
	o := clients.Offer{Name: "s", Tools: []clients.Tool{{"a", "äöü", nil}, {"abc", "1", nil}}}
	limited := clients.Client{Tools: 1, Descriptions: 9, Description: 3, NameLength: 60, Front: "mcp_%s_"}
	ssetest.Want(t, "all limits", limited.Uses(o), []clients.Use{
		{clients.UsedTools, 2, 1}, {clients.UsedDescriptions, 4, 9}, {clients.UsedDescription, 3, 3}, {clients.UsedName, 9, 60},
	})
	ssetest.Want(t, "no limits", len(clients.Client{}.Uses(o)), 0)
}

// A limit that only calls would show, or that nobody knows, is told too: it is not the same as no limit.
func TestUntriedAndUnknown(t *testing.T) {
	some := clients.Client{Call: time.Minute, Result: 25_000, ResultUnit: "tokens", LongResults: "cuts it", Tools: 40}
	ssetest.Want(t, "untried", some.Untried(), []string{"a call that takes longer than 1m0s: it gives up", "a result of more than 25000 tokens: it cuts it"})
	ssetest.Want(t, "unknown", some.Unknown(), []string{"how long it waits for tools", "how long descriptions may be", "how long names may be", "which schemas it takes"})
	ssetest.Want(t, "untried of a client without limits", len(clients.Client{}.Untried()), 0)
	ssetest.Want(t, "unknown of a client without limits", len(clients.Client{}.Unknown()), 7)
}

// Clients are known by what they send: the names and User-Agents are those of recordings of real programs.
func TestClientsAreRecognised(t *testing.T) {
	for called, want := range map[string]string{
		"claude-code": "claude-code", "codex-mcp-client": "codex", "copilot-cli": "copilot-cli", "opencode": "opencode",
		"gemini-cli-mcp-client": "gemini-cli", "qwen-cli-mcp-client-demo": "qwen-code", "@cline/core": "cline",
		"continue-cli-client": "continue", "Visual Studio Code": "vs-code",
		clients.Product("claude-code/2.1.332 (sdk-cli)"): "claude-code", clients.Product("Java-http-client/17.0.12"): "java-sdk",
		"Claude Code": "claude-code", "TRAE": "trae", "vscode": "vs-code", "VS_Code": "vs-code", "Copilot": "copilot-cli", "gemini": "gemini-cli", // as people write them
		clients.Product("node"): "", clients.Product("Bun/1.3.13"): "", clients.Product("curl/8"): "curl", "netscape": "", clients.Product(""): "", "my-client": "",
	} {
		if c, known := clients.Named(called); c.Name != want || known != (want != "") {
			t.Errorf("%q: got %q, want %q", called, c.Name, want)
		}
	}
}

// A limit and what the client does beyond it are known together, and nobody has the name of another.
func TestTable(t *testing.T) {
	if names := clients.Names(clients.All); !slices.IsSorted(names) {
		t.Errorf("%q are not sorted", names)
	}
	for _, c := range clients.All {
		for _, name := range append([]string{c.Name, c.Title}, c.Calls...) {
			if of, _ := clients.Named(name); of.Name != c.Name {
				t.Errorf("%q means %s, and %s too", name, of.Name, c.Name)
			}
		}
		for what, whole := range map[string]bool{
			"Tools, Descriptions and Over": (c.Tools > 0 || c.Descriptions > 0) == (c.Over != ""),
			"NameLength and LongNames":     c.NameLength > 0 || c.LongNames == "",
			"Keywords and Schemas":         (len(c.Keywords) > 0) == (c.Schemas != ""),
			"Result and LongResults":       (c.Result > 0) == (c.LongResults != "" && c.ResultUnit != ""),
			"Patience and Longer":          c.Patience > 0 || c.Longer == "",
			"Front":                        c.Front == "" || strings.Count(c.Front, "%s") == 1,
		} {
			if !whole {
				t.Errorf("%s: %s are not whole", c.Name, what)
			}
		}
	}
}

// Each file has a key, and the format that its name says. Only what is an object in JSON has entries in JSON.
func TestFilesHaveTheirFormat(t *testing.T) {
	formats := map[string]clients.Format{".json": clients.JSON, ".toml": clients.TOML, ".yaml": clients.YAML}
	for _, c := range clients.WithEntry() {
		e := c.Entry
		for _, file := range append(e.Files, e.Others...) {
			if format, known := formats[filepath.Ext(file)]; e.Key == "" || !known || format != e.Format {
				t.Errorf("%s: %s has the format %d and the key %q", c.Name, file, e.Format, e.Key)
			}
		}
		if hasJSON := e.JSON(clients.Server{Name: "a", URL: "b"}) != nil; hasJSON != (e.Key != "" && e.Format == clients.JSON) {
			t.Errorf("%s: an entry in JSON is there: %t", c.Name, hasJSON)
		}
		for _, file := range e.Others {
			ssetest.Want(t, c.Name+": "+file+" is the user's", strings.HasPrefix(file, "~/"), true)
		}
		if e.Projects != "" && len(e.Others) == 0 {
			t.Errorf("%s: no file has its projects", c.Name)
		}
	}
}

func TestDrops(t *testing.T) {
	ssetest.Want(t, "a small list", len(clients.Drops("server", 40, 8000, 53)), 0)
	ssetest.Want(t, "a long one", clients.Drops("server", 129, 8001, 54), []string{
		`Cursor: names of 60 characters with "server_" in front`,
		"Trae: 40 tools over all servers", "Trae: 8000 characters of descriptions over all servers",
		`Trae: names of 60 characters with "server_" in front`,
		"VS Code: 128 tools over all servers",
	})
}

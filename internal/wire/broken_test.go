package wire_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestAnsweredID(t *testing.T) {
	for data, want := range map[string]jsonrpc.ID{
		`{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}`:                           "7",
		`{"jsonrpc":"2.0","id":7,"result":{"x":-Infinity}}`:                     "7",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"a\x01b\"}}":          "7",
		`{"jsonrpc":"2.0","id":7,"result":{"x":[1,2,]},}`:                       "7",
		`{'jsonrpc': '2.0', 'id': 7, 'result': {'x': None}}`:                    "7",
		`{'jsonrpc': '2.0', 'id': '7', 'result': {'x': "it's"}}`:                `"7"`,
		`{"jsonrpc":"2.0","id":7,"result":{"x":"cut`:                            "7",
		`{"jsonrpc":"2.0","id":7,"res`:                                          "7",
		`{"result":{"id":1,"deep":{"id":2},"x":NaN},"jsonrpc":"2.0","id":7}`:    "7",
		`{"result":[{"id":1},undefined],"id":"a\"b","jsonrpc":"2.0"}`:           `"a\"b"`,
		`{"jsonrpc":"2.0","id":7.0,"result":NaN}`:                               "7.0",
		`{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}`: "7",

		`{"jsonrpc":"2.0","id":`:                                "", // cut in the id, or
		`{"jsonrpc":"2.0","id":7,"id":7,"result":NaN}`:          "7",
		`{"id":7,"result":{"x":NaN}}`:                           "7",
		`{"result":{},"jsonrpc":"2.0","id":7`:                   "7", // perhaps: see TestAnIDMayBeCut
		`{"id":7,"result":"x jsonrpc y","x":NaN}`:               "",
		`{"id":7,"msg":"jsonrpc call","x":NaN}`:                 "",
		`{"jsonrpc":"2.0","id":"7`:                              "",
		`{"jsonrpc":"2.0","id":7,"id":8,"result":NaN}`:          "",
		`{"jsonrpc":"2.0","id":null,"result":NaN}`:              "",
		`{"jsonrpc":"2.0","id":{"a":1},"result":NaN}`:           "",
		`{"jsonrpc":"2.0","result":{"id":7,"x":NaN}}`:           "",
		`{"jsonrpc":"2.0","id":7,"method":"ping","params":NaN}`: "", // the server's own
		`{"level":30,"id":7,"msg":"done","x":NaN}`:              "", // a line of a log
		`{"jsonrpc":"2.0","id":7,"result":{},"took":NaN}`:       "",
		`{"level":30,"id":7,"result":"done","error":"boom"}`:    "",
		`{"level":30,"req":{"jsonrpc":"2.0","id":7},"id":8}`:    "",
		`{"id":7,"msg":"x"} {"jsonrpc":"2.0","x":NaN}`:          "", // two objects
		`{"jsonrpc":"2.0","x":NaN},{"id":7}`:                    "",
		`{"jsonrpc":"2.0","id":7,"result":NaN}{"id":8,"x":NaN}`: "7",
		`not JSON, "id":7, "jsonrpc"`:                           "",
		``:                                                      "",
	} {
		if got, _, ok := wire.AnsweredID([]byte(data)); got != want && ok || ok != (want != "") {
			t.Errorf("%s: got %s, %v, want %s", data, got, ok, want)
		}
	}
}

// An id with which the data ends may be the beginning of another.
func TestAnIDMayBeCut(t *testing.T) {
	for data, want := range map[string]bool{
		`{"result":{},"jsonrpc":"2.0","id":7`:   false,
		`{"result":{},"jsonrpc":"2.0","id":7 `:  true,
		`{"result":{},"jsonrpc":"2.0","id":7}`:  true,
		`{"jsonrpc":"2.0","id":7,"result":{"x`:  true,
		`{"result":{},"jsonrpc":"2.0","id":"7"`: false,
	} {
		if _, whole, ok := wire.AnsweredID([]byte(data)); whole != want || !ok {
			t.Errorf("%s: whole is %v, %v", data, whole, ok)
		}
	}
}

// One line of a server must not keep a core busy: an end that is looked for once for each of
// many values would take hours here.
func TestAnsweredIDReadsALineOnce(t *testing.T) {
	for _, piece := range []string{`"a":x`, `"a":'x`, `"a":[`, `"a":"x"`, `"a":`} {
		wire.AnsweredID([]byte(`{"jsonrpc":"2.0",` + strings.Repeat(piece, 600_000)))
	}
}

// A message that Parse takes for a response with an id has that id here, too.
func FuzzAnsweredID(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"a":["}",'x']}}`))
	f.Add([]byte(`{'jsonrpc': '2.0', 'id': '7\'', 'result`))
	f.Fuzz(func(t *testing.T, data []byte) {
		id, _, ok := wire.AnsweredID(data)
		m, err := jsonrpc.Parse(data)
		if err == nil && m.Kind != jsonrpc.Response && ok {
			t.Fatalf("%q is a %s, and answers %s", data, m.Kind, id)
		}
		if err == nil && ok && m.ID != id {
			t.Fatalf("%q has the id %s, not %s", data, m.ID, id)
		}
	})
}

// A message of a client that lacks its version can mean one thing alone.
func TestParseClient(t *testing.T) {
	for data, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:        `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"id":1,"method":"ping"}`:                        `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		" {\"method\":\"notifications/x\",\"params\":{}}": `{"jsonrpc":"2.0","method":"notifications/x","params":{}}`,
		`{"id":1,"result":{}}`:                            `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:        "",
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:          "",
		`{"id":1,"method":5}`:                             "",
		`{"id":1}`:                                        "",
		`{}`:                                              "",
		`[]`:                                              "",
		`x`:                                               "",
		``:                                                "",
	} {
		m, err := wire.ParseClient([]byte(data))
		if (err == nil) != (want != "") || err == nil && string(m.Raw()) != want {
			t.Errorf("%s: %v, %v", data, m, err)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, same := range [][]jsonrpc.ID{{"5", `"5"`, "5.0", "5.000"}, {"0", `"0"`}, {"-1", `"-1"`, "-1.0"}, {`"a"`}, {"1.5"}, {`"1.5"`}, {`"05"`}, {`""`}, {"1e3"}, {`"5.0"`}} {
		for _, a := range same {
			for _, b := range []jsonrpc.ID{"5", "0", "-1", `"a"`, "1.5", `"1.5"`, `"05"`, `""`, "1e3", `"5.0"`} {
				if got, want := jsonrpc.Alike(a, b), b == same[0]; got != want {
					t.Errorf("%s and %s: %v", a, b, got)
				}
			}
		}
	}
}

func TestMend(t *testing.T) {
	for data, want := range map[string]string{
		`{"id":7,"result":{}}`:                                                     `{"jsonrpc":"2.0","id":7,"result":{}}`,
		` {"id":"7","error":{"code":-1,"message":"m"}}`:                            `{"jsonrpc":"2.0","id":"7","error":{"code":-1,"message":"m"}}`,
		`{"id":7,"result":"done"}`:                                                 "",
		`{"id":7,"error":"boom","level":50}`:                                       "",
		`{"id":7,"error":{"code":"ECONNREFUSED"},"level":50}`:                      "",
		`{"id":7,"method":"GET","result":{}}`:                                      "",
		`{"id":7,"msg":"x"}`:                                                       "",
		`{"result":{}}`:                                                            "",
		`{"id":7,"result":{},"error":null}`:                                        `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":"x","error":null}`:                       `{"jsonrpc":"2.0","id":7,"result":"x"}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"method":null}`:                       `{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":-1,"message":"m"}}`: `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":7,"result":null}`:                                   "",
		`{"id":7,"result":null,"error":"boom"}`:                                    "",
		`{"id":7,"result":{},"error":{"code":1,"message":""}}`:                     "",
		`[1]`:              "",
		`{"id":7,"resul`:   "",
		`{"id":7,"x":NaN}`: "",
	} {
		got := wire.Mend([]byte(data))
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", data, got, want)
		}
		if m, err := jsonrpc.Parse(got); want != "" && (err != nil || m.Kind != jsonrpc.Response) {
			t.Errorf("%s: %v", got, err)
		}
	}
}

// Each way in which an answer may differ from JSON-RPC 2.0 is here because somebody has met it: in an issue, or in
// what a program writes. How else JSON may be broken makes no difference to AnsweredID, which reads the outermost
// members alone.
func TestReportsOfServers(t *testing.T) {
	for from, c := range map[string]struct{ answer, mended, id string }{
		"gensecaihq/Wazuh-MCP-Server#59": {answer: `{"jsonrpc":"2.0","id":7,"result":{"tools":[]},"error":null}`,
			mended: `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`},
		"JSON-RPC 1.0, 1.2 Response": {answer: `{"result":null,"error":{"code":-1,"message":"no"},"id":7}`,
			mended: `{"jsonrpc":"2.0","error":{"code":-1,"message":"no"},"id":7}`},
		"google/langsvr#13": {answer: `{"id":7,"result":{"capabilities":{}}}`,
			mended: `{"jsonrpc":"2.0","id":7,"result":{"capabilities":{}}}`},
		"Python 3.11, json.dumps": {answer: `{"jsonrpc": "2.0", "id": 7, "result": {"structuredContent": {"mean": NaN}}}`, id: "7"},
		"Python 3.11, json.dumps(asdict(message))": {
			answer: `{"jsonrpc": "2.0", "id": 7, "method": null, "params": null, "result": {"tools": []}, "error": null}`,
			mended: `{"jsonrpc": "2.0", "id": 7, "params": null, "result": {"tools": []}}`,
		},
		"Python 3.11, print": {answer: `{'jsonrpc': '2.0', 'id': 7, 'result': {'content': [{'type': 'text', 'text': "it's"}], 'isError': False}}`,
			id: "7"},
		"PrefectHQ/fastmcp#1152": {answer: `{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"<a href=\"//home.baidu.com>`,
			id: "6"},
	} {
		if got := string(wire.Mend([]byte(c.answer))); got != c.mended {
			t.Errorf("%s: it is mended to %s, want %s", from, got, c.mended)
		}
		if id, whole, ok := wire.AnsweredID([]byte(c.answer)); c.id != "" && (string(id) != c.id || !whole || !ok) {
			t.Errorf("%s: it answers %s, %v, %v, want %s", from, id, whole, ok, c.id)
		}
	}
}

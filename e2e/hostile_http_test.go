//go:build all

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileHTTP is a Streamable HTTP server (2025-11-25) that answers as the fake
// server on stdio does, but for the call of misbehave.
type hostileHTTP struct {
	server *httptest.Server
	fake   *fakeState
	over   chan struct{} // closed at the end of the test: whoever hangs goes on
}

func startHostileHTTP(t *testing.T) *hostileHTTP {
	t.Helper()
	h := &hostileHTTP{fake: &fakeState{out: lockedWriter{w: io.Discard}}, over: make(chan struct{})}
	h.server = httptest.NewServer(h)
	t.Cleanup(func() {
		close(h.over)
		h.server.CloseClientConnections()
		h.server.Close()
	})
	return h
}

func (h *hostileHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m fakeMessage
	if err != nil || json.Unmarshal(body, &m) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	switch {
	case m.ID == nil || m.Method == "":
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call" && m.Params.Name == "misbehave":
		h.misbehave(w, r, m)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "the-only-one")
		fallthrough
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, fakeResult(m, string(body), h.fake))
	}
}

// misbehave answers one call as its "how" says; the modes are as on stdio, as far
// as there is a difference.
func (h *hostileHTTP) misbehave(w http.ResponseWriter, r *http.Request, m fakeMessage) {
	done := answerOf(m.ID, "done")
	how := m.Params.Arguments.How
	if body, isJSON := map[string]string{
		"null": answerOf(json.RawMessage("null"), "done"), "both": `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{},"error":{"code":1,"message":"m"}}`,
		"another": answerOf(json.RawMessage("999999"), "strange"), "binary": "\x00\xff\xfe\n", "empty": "", "batch": "[" + done + "]", "half": done[:20],
	}[how]; isJSON {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body) // the gateway may be gone
		return
	}
	switch how {
	case "accepted":
		w.WriteHeader(http.StatusAccepted)
	case "html":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<h1>Welcome</h1>")
	case "huge":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.Replace(done, "done", strings.Repeat("x", 100_000_000), 1))
	case "nothing":
		select {
		case <-r.Context().Done():
		case <-h.over:
		}
	case "elsewhere":
		http.Redirect(w, r, "http://elsewhere.invalid/mcp", http.StatusTemporaryRedirect)
	case "teapot":
		http.Error(w, "no", http.StatusTeapot)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		h.stream(w, how, done)
	}
}

// stream misbehaves in an event stream.
func (h *hostileHTTP) stream(w http.ResponseWriter, how, done string) {
	send := func(data string) { fmt.Fprintf(w, "data: %s\n\n", strings.TrimSpace(data)) }
	switch how {
	case "stream-twice":
		send(done)
		send(strings.Replace(done, "done", "again", 1))
	case "stream-strangers":
		for _, id := range []string{"0", "-1", "999999999", `"nobody"`, "1.5"} {
			send(answerOf(json.RawMessage(id), "strange"))
		}
		send(done)
	case "stream-text":
		fmt.Fprint(w, "hello\n\ndata: no json\n\nevent: x\n\n: comment\n\nid: \x00\nretry: -1\ndata\n\n\xff\xfe\n\n")
		send(done)
	case "stream-cut":
		fmt.Fprintf(w, "data: %s", done[:20])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "stream-ends":
		send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"that was all"}}`)
	case "stream-huge":
		fmt.Fprint(w, "data: ")
		for range 100 {
			fmt.Fprint(w, strings.Repeat("x", 1_000_000))
		}
		fmt.Fprint(w, "\n\n")
		send(done)
	case "stream-huge-answer":
		before, after, _ := strings.Cut(done, "done")
		send(before + strings.Repeat("x", 100_000_000) + after)
		send(done)
	case "stream-asks":
		send(`{"jsonrpc":"2.0","id":"asked","method":"sampling/createMessage","params":{}}`)
		send(`{"jsonrpc":"2.0","id":"asked","method":"roots/list"}`)
		send(done)
	case "stream-flood":
		for range 20_000 {
			send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody's","progress":1}}`)
		}
		send(done)
	case "stream-slow":
		for range 10 {
			fmt.Fprint(w, ": still here\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(20 * time.Millisecond): // a slow server is what is played
			case <-h.over:
			}
		}
		send(done)
	}
}

// As TestBadServerHarmsOnlyTheRequestThatItFails, for a server at a URL.
func TestBadRemoteServerHarmsOnlyTheRequestThatItFails(t *testing.T) {
	t.Parallel()
	// Whose answer it is, the response that carries it says: without an id, and in
	// a batch of 2025-03-26, too.
	works := []string{"null", "batch", "stream-twice", "stream-strangers", "stream-text", "stream-huge", "stream-asks", "stream-flood", "stream-slow"}
	fails := []string{"both", "another", "binary", "empty", "half", "accepted", "html", "huge", "nothing", "elsewhere",
		"teapot", "stream-cut", "stream-ends", "stream-huge-answer"}
	for mode, flags := range modes() {
		for _, how := range slices.Concat(works, fails) {
			t.Run(how+"/"+mode, func(t *testing.T) {
				t.Parallel()
				h := startHostileHTTP(t)
				wants, timeout := "", "5s"
				if slices.Contains(works, how) { // however long a busy machine takes
					wants, timeout = "done", "60s"
				}
				g := startGateway(t, slices.Concat([]string{"--request-timeout", timeout, "--url", h.server.URL}, flags)...)
				h.harmsOne(t, g, how, wants)
			})
		}
	}
}

// harmsOne has one client make the server misbehave, while another one works. When
// the server has closed its connections, none is left open.
func (h *hostileHTTP) harmsOne(t *testing.T, g *gateway, how, wants string) {
	innocent, guilty := openStream(t, g.url), openStream(t, g.url)
	for _, s := range []*stream{innocent, guilty} {
		s.request("0", "tools/list", "{}")
	}
	files := openFiles(t, g)
	guilty.accepted(requestJSON("1", "tools/call", callParams("misbehave", fmt.Sprintf(`{"how":%q}`, how))))
	for id := 1; id <= 10; id++ {
		assertEchoes(t, innocent, id, "innocent")
	}
	got := parseResponse(t, guilty.await("response to 1", answers("message", "1")).Data)
	switch {
	case wants != "" && (got.Error != nil || got.text(t) != wants):
		t.Errorf("the call = %+v (error %v), want %q", got.Result, got.Error, wants)
	case wants == "" && got.Error == nil:
		t.Errorf("the call = %+v, want an error", got.Result)
	}
	for id := 11; id <= 20; id++ {
		assertEchoes(t, innocent, id, "innocent")
		assertEchoes(t, guilty, id, "guilty")
	}
	assertEachAnsweredOnce(t, innocent)
	assertEachAnsweredOnce(t, guilty)
	if !strings.Contains(how, "huge") {
		for id := 101; id <= 105; id++ { // more than the connections that may be idle now
			guilty.accepted(requestJSON(fmt.Sprint(id), "tools/call", callParams("misbehave", fmt.Sprintf(`{"how":%q}`, how))))
		}
		for id := 101; id <= 105; id++ {
			guilty.await("response", answers("message", fmt.Sprint(id)))
		}
	}
	h.server.CloseClientConnections()
	g.eventually(fmt.Sprintf("no more than the %d open files of before", files), func() bool { return openFiles(t, g) <= files })
}

package sse_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/auth"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/sse"
)

// session is an open stream on a socket, and where to post to it.
type session struct {
	*fixture
	*reader
	client *http.Client
	base   string
	url    string
}

func openSession(t testing.TB, cfg config) *session {
	t.Helper()
	f := newFixture(t, cfg)
	srv := start(t, f)
	return attach(t, f, srv.Client(), srv.URL)
}

func attach(t testing.TB, f *fixture, client *http.Client, base string, header ...string) *session {
	t.Helper()
	r := openStream(t, client, base+"/sse?event=message&auto=0", f, header...)
	t.Cleanup(func() { r.Body.Close() })
	return &session{f, r, client, base, base + r.next().Data}
}

// works fails the test unless the stream still answers.
func (s *session) works(t testing.TB) {
	t.Helper()
	if res, body := post(t, s.client, s.url, `{"jsonrpc":"2.0","id":"works","method":"echo","params":{"a":1}}`); res.StatusCode != http.StatusAccepted || body != "" {
		t.Fatalf("POST: got %d %q", res.StatusCode, body)
	}
	if got, want := s.next().Data, `{"jsonrpc":"2.0","id":"works","result":{"a":1}}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestMessageIsAcceptedAndAnswered(t *testing.T) {
	s := openSession(t, config{})
	s.works(t)
	for _, id := range []string{`1`, `0`, `-7`, `9007199254740993`, `1.5`, `1e3`, `"a\u0000b"`, `""`, `"` + strings.Repeat("i", jsonrpc.MaxIDBytes-2) + `"`} {
		res, body := post(t, s.client, s.url, `{"jsonrpc":"2.0","id":`+id+`,"method":"echo","params":{"x":12345678901234567890.10}}`)
		if res.StatusCode != http.StatusAccepted {
			t.Fatalf("id %.40s: got %d %s", id, res.StatusCode, body)
		}
		ssetest.Want(t, "answer", s.next().Data, `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":12345678901234567890.10}}`)
	}
	if res, body := post(t, s.client, s.url, `{"jsonrpc":"2.0","id":1}`); res.StatusCode != http.StatusBadRequest || !isRefusal(body) {
		t.Errorf("no message: got %d %s", res.StatusCode, body)
	}
	// what comes on several lines leaves on one
	post(t, s.client, s.url, "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\"echo\",\n\"params\":{\n\"a\":\n1}}")
	ssetest.Want(t, "answer", s.next().Data, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`)
}

func TestPostAroundClose(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":1,"method":"echo"}`
	s := openSession(t, config{})
	s.works(t)
	s.c.Close(connstate.ClosedShutdown)
	if res, body := post(t, s.client, s.url, message); res.StatusCode != http.StatusNotFound || !isRefusal(body) {
		t.Errorf("after close: got %d %s", res.StatusCode, body)
	}

	s = openSession(t, config{})
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		s.c.CloseGracefully(connstate.ClosedShutdown, time.Second)
	}()
	for range 50 { // while it closes: accepted or gone, never anything else
		if res, body := post(t, s.client, s.url, message); res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusAccepted {
			t.Errorf("during close: got %d %s", res.StatusCode, body)
		}
	}
	<-closing
	s.Body.Close()
}

func TestPrincipalsAreKeptApart(t *testing.T) {
	authenticate, err := auth.BearerTokens(map[string]string{"token-a": "alice", "token-b": "bob", "token-a2": "alice"})
	ssetest.Must(t, err)
	f := newFixture(t, config{sse: sse.Options{Options: httpcheck.Options{Authenticate: authenticate}}})
	srv := start(t, f)
	s := attach(t, f, srv.Client(), srv.URL, "Authorization", "Bearer token-a")
	ssetest.Want(t, "principal", s.c.Client().Principal, "alice")
	for token, want := range map[string]int{"token-a": 202, "token-a2": 202, "token-b": 404, "": 401, "x": 401} {
		res, body := post(t, s.client, s.url, `{"jsonrpc":"2.0","method":"n"}`, "Authorization", "Bearer "+token)
		if res.StatusCode != want || want != 202 && !isRefusal(body) {
			t.Errorf("token %q: got %d %s, want %d", token, res.StatusCode, body, want)
		}
	}
	_, mine := post(t, s.client, s.url, `{"jsonrpc":"2.0","method":"n"}`, "Authorization", "Bearer token-b")
	_, none := post(t, s.client, s.base+"/sse/none/message", `{"jsonrpc":"2.0","method":"n"}`, "Authorization", "Bearer token-b")
	ssetest.Want(t, "answers for ids that exist and not", mine, none)
}

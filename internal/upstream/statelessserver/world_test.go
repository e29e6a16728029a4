package statelessserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/upstream/exchange"
	"github.com/mcp-sse/mcp-sse/internal/upstream/statelessserver"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const discovered = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete","ttlMs":0,"cacheScope":"private",` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted","version":"1"}}}`

// post is one request that a scripted server got.
type post struct {
	t testing.TB
	w http.ResponseWriter
	r *http.Request
	m *jsonrpc.Message

	at time.Time
}

// json answers with a status and a body, in which $ID is the id of the request.
func (p *post) json(status int, body string) {
	p.w.Header().Set("Content-Type", "application/json")
	p.w.WriteHeader(status)
	_, _ = io.WriteString(p.w, p.fill(body))
}

// result answers with a result.
func (p *post) result(result string) { p.json(200, `{"jsonrpc":"2.0","id":$ID,"result":`+result+`}`) }

// fail answers with an error.
func (p *post) fail(status int, e string) { p.json(status, `{"jsonrpc":"2.0","id":$ID,"error":`+e+`}`) }

// event sends a message as an event.
func (p *post) event(msg string) {
	p.w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(p.w, "data: "+p.fill(msg)+"\n\n")
	p.w.(http.Flusher).Flush()
}

func (p *post) fill(s string) string { return strings.ReplaceAll(s, "$ID", string(p.m.ID)) }

// param returns a member of the params, empty for none.
func (p *post) param(names ...string) string {
	raw, _ := rawjson.Member(p.m.Params(), names...)
	return string(raw)
}

// meta returns a member of _meta that the protocol names.
func (p *post) meta(name string) string {
	return p.param("_meta", "io.modelcontextprotocol/"+name)
}

// scripted is a session with a scripted server.
type scripted struct {
	*upstreamtest.Talk
	t    *testing.T
	logs bytes.Buffer // to be read after the end of the session

	mu    sync.Mutex
	posts []*post
}

// newStateless returns a session with a server that answers by handle. discovered is what it
// has said of itself. There is no socket, so that time may be fake.
func newStateless(t *testing.T, discovered string, handle func(*post)) *scripted {
	t.Helper()
	s := &scripted{t: t}
	client := upstreamtest.Streamable(upstreamtest.ServeHere(s.handler(handle))).Client
	log := slog.New(slog.NewTextHandler(&s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.Talk = upstreamtest.NewTalk(t, newConn(discovered, client, log))
	t.Cleanup(func() { _ = s.Conn.Close() })
	return s
}

func newConn(discovered string, client *http.Client, log *slog.Logger) *statelessserver.Conn {
	return statelessserver.New(&exchange.Endpoint{URL: "http://handler.invalid/mcp", Client: client, Limit: 1 << 20, Log: log, Values: context.Background()}, json.RawMessage(discovered))
}

// handler notes each post and hands it to handle.
func (s *scripted) handler(handle func(*post)) upstreamtest.Handler {
	return func(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
		if m == nil {
			return // the client gave up
		}
		p := &post{s.t, w, r, m, time.Now()}
		s.mu.Lock()
		s.posts = append(s.posts, p)
		s.mu.Unlock()
		handle(p)
	}
}

// seen returns the posts of a method so far.
func (s *scripted) seen(method string) []*post {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*post
	for _, p := range s.posts {
		if p.m.Method == method {
			out = append(out, p)
		}
	}
	return out
}

// initialize opens the session with capabilities of the client.
func (s *scripted) initialize(capabilities string) {
	s.t.Helper()
	s.Send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}}`)
	if got, _ := s.Recv(); !strings.Contains(got, `"id":"init","result":`) {
		s.t.Fatalf("initialize was answered with %s", got)
	}
	s.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// want checks the next message.
func (s *scripted) want(want string) {
	s.t.Helper()
	if got, _ := s.Recv(); got != want {
		s.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// wantEnd checks that the session ends with an error that has this part.
func (s *scripted) wantEnd(part string) {
	s.t.Helper()
	if err := s.Ended(); !strings.Contains(err.Error(), part) {
		s.t.Fatalf("the session ended with %v, want %q", err, part)
	}
}

func toolCall(id, name string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{"n":9007199254740993}}}`, id, name)
}

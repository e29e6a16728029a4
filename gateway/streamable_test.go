package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// poster is a client of Streamable HTTP.
type poster struct {
	t       testing.TB
	client  *http.Client
	session string
}

// overStreamable runs a test of a gateway with HTTP in memory.
func overStreamable(t *testing.T, u *server, opts gateway.Options, test func(t *testing.T, g *gateway.Gateway, dial func() *poster)) {
	t.Helper()
	inFakeTime(t, u, opts, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		test(t, g, func() *poster { return &poster{t: t, client: srv.Client} })
	})
}

// post sends a message and returns the status and the answer; the poster keeps the session
// that a response names.
func (p *poster) post(message string) (status int, answer string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(message))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
	}
	res, err := p.client.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		p.session = id
	}
	answer = strings.TrimSpace(string(body))
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		_, answer, _ = strings.Cut(answer[strings.LastIndex(answer, "\nid: ")+1:], "data: ")
	}
	return res.StatusCode, answer
}

// want posts a message and checks the answer.
func (p *poster) want(message, answer string) {
	p.t.Helper()
	if status, got := p.post(message); status != http.StatusOK || got != answer {
		p.t.Errorf("%s: got %d %s, want %s", message, status, got, answer)
	}
}

// Requests wait for a server that starts slowly, with a session and without one.
func TestStreamableWaitsForTheServer(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method == "initialize" {
			time.AfterFunc(3*time.Second, func() { s.answer(m) })
			return true
		}
		return false
	}}
	overStreamable(t, u, gateway.Options{}, func(t *testing.T, _ *gateway.Gateway, dial func() *poster) {
		p := dial()
		p.want(request("1", "tools/list"), resultOf("1", 1, "tools/list"))
		p.want(request("1", "tools/list"), resultOf("1", 1, "tools/list"))
		if u.starts() != 1 {
			t.Errorf("%d starts", u.starts())
		}
		own := dial()
		own.want(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"played","version":"1.0"}}}`)
		own.want(request("1", "tools/list"), resultOf("1", 2, "tools/list"))
	})
}

// A session goes on when its server dies.
func TestStreamableSurvivesItsServer(t *testing.T) {
	u := &server{}
	overStreamable(t, u, gateway.Options{}, func(t *testing.T, _ *gateway.Gateway, dial func() *poster) {
		p := dial()
		p.want(request("1", "tools/list"), resultOf("1", 1, "tools/list"))
		u.session(t, 1).die()
		synctest.Wait()
		p.want(request("2", "tools/list"), resultOf("2", 2, "tools/list"))
	})
}

// A gateway that was restarted adopts the sessions of the one before.
func TestStreamableAdoptsAfterARestart(t *testing.T) {
	overStreamable(t, &server{}, gateway.Options{AdoptSessions: true}, func(t *testing.T, _ *gateway.Gateway, dial func() *poster) {
		p := dial()
		p.session = "of-the-gateway-before"
		p.want(request("7", "tools/list"), resultOf("7", 1, "tools/list"))
		p.want(request("8", "tools/list"), resultOf("8", 1, "tools/list"))
		if p.session != "of-the-gateway-before" {
			t.Errorf("the session is %s", p.session)
		}
	})
}

// Transports says what is served; the answer to another path names it.
func TestTransports(t *testing.T) {
	for _, test := range []struct {
		transports []string
		sse, mcp   int // statuses
		told       string
	}{
		{nil, 405, 400, "serves GET /sse and POST /sse/{id}/message, and POST, GET and DELETE /mcp"},
		{[]string{"sse"}, 405, 404, "serves GET /sse and POST /sse/{id}/message"},
		{[]string{"streamable"}, 404, 400, "serves POST, GET and DELETE /mcp"},
	} {
		overStreamable(t, &server{}, gateway.Options{Transports: test.transports}, func(t *testing.T, _ *gateway.Gateway, dial func() *poster) {
			for path, want := range map[string]int{"/sse": test.sse, "/mcp": test.mcp, "/other": 404} {
				req, err := http.NewRequest(http.MethodPost, "http://localhost"+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Accept", "*/*")
				req.Header.Set("Content-Type", "application/json")
				res, err := dial().client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if res.StatusCode != want || want == 404 && !strings.Contains(string(body), test.told+`"`) {
					t.Errorf("%v, %s: got %s %s, want %d", test.transports, path, res.Status, body, want)
				}
			}
		})
	}
}

// When the gateway shuts down, requests in flight are answered, and new ones refused.
func TestStreamableDrains(t *testing.T) {
	u := &server{handle: func(s *serverSession, m *jsonrpc.Message) bool {
		if m.Method != "work" {
			return false
		}
		time.AfterFunc(5*time.Second, func() { s.answer(m) })
		return true
	}}
	overStreamable(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, dial func() *poster) {
		p := dial()
		p.want(request("0", "ready"), resultOf("0", 1, "ready"))
		done := make(chan bool)
		go func() {
			p.want(request("1", "work"), resultOf("1", 1, "work"))
			done <- true
		}()
		synctest.Wait()
		g.Drain()
		ended := make(chan error, 1)
		go func() { ended <- g.Shutdown(t.Context()) }()
		synctest.Wait()
		if status, body := dial().post(request("1", "tools/list")); status != http.StatusServiceUnavailable {
			t.Errorf("a new session: got %d %s", status, body)
		}
		if _, body := p.post(request("2", "tools/list")); !strings.Contains(body, "draining") {
			t.Errorf("a new request: got %s", body)
		}
		<-done
		if err := <-ended; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// resultOf is the standard answer of a server's session.
func resultOf(id string, session int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"session":%d,"method":%q}}`, id, session, method)
}

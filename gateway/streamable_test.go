package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// When the gateway shuts down, requests in flight are answered, and new ones refused.
func TestStreamableDrains(t *testing.T) {
	u := &server{handle: on("work", late(5*time.Second))}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		p := connectStreamable(t, g, srv, func(int) int { return 1 })
		defer p.leave()
		p.post(request("1", "work"))
		synctest.Wait()
		done := shutdown(g, time.Minute)
		synctest.Wait()
		p.post(request("2", "tools/list"))
		newcomer := &streamablePeer{t: t, srv: srv, ctx: p.ctx}
		if res := newcomer.request(http.MethodPost, request("1", "tools/list")); res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("a new session: got %s", res.Status)
		}
		equal(t, "error", <-done, nil)
		synctest.Wait()
		got := said(t, p)
		equal(t, "messages", got, []string{"2 draining retryable=true", answered("1", 1, "work")})
	})
}

// A client that ends its session learns which requests it may repeat.
func TestRequestsOfADeletedSession(t *testing.T) {
	u := &server{handle: func(_ *serverSession, m *jsonrpc.Message) bool { return m.Method != "initialize" }}
	inFakeTime(t, u, gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		p := connectStreamable(t, g, srv, func(int) int { return 0 })
		p.post(request("1", "tools/call"))
		synctest.Wait()
		p.post(request("2", "tools/list"))
		synctest.Wait()
		p.request(http.MethodDelete, "").Body.Close()
		synctest.Wait() // the responses are read
		p.ends = false
		p.leave()
		got := said(t, p)
		slices.Sort(got)
		equal(t, "messages", got, []string{"1 closed retryable=false", "2 closed retryable=true"})
	})
}

// streamablePeer is a client over Streamable HTTP. Package streamable has the tests of responses that
// break.
type streamablePeer struct {
	t       testing.TB
	g       *gateway.Gateway
	srv     *pipetest.Server
	session string
	ends    bool // by DELETE, when it leaves

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	got   []connstate.Event // guarded by mu
	asked map[string]int    // guarded by mu: POSTs that were not refused, by the id of a request
}

// connectStreamable opens a session: by initialize, or by another request.
func connectStreamable(t testing.TB, g *gateway.Gateway, srv *pipetest.Server, draw func(n int) int) *streamablePeer {
	p := &streamablePeer{t: t, g: g, srv: srv, ends: draw(2) == 0, asked: map[string]int{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for p.session == "" { // a start may fail
		opening := request(`"open"`, "ping2")
		if draw(2) == 0 {
			opening = initialize(`"open"`, "2025-11-25", "{}")
		}
		if res := p.request(http.MethodPost, opening); res != nil {
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if !strings.Contains(opening, "initialize") || strings.Contains(string(body), "protocolVersion") {
				p.session = res.Header.Get("Mcp-Session-Id")
			}
		}
	}
	p.wg.Go(func() { p.read(p.request(http.MethodGet, ""), nil) }) // ends with leave, or the session
	return p
}

// request sends a request that must not fail before the client leaves.
func (p *streamablePeer) request(method, body string) *http.Response {
	req := ssetest.Request(p.ctx, method, "http://localhost/mcp", body)
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
	}
	res, err := p.srv.Client.Do(req)
	if err != nil && p.ctx.Err() == nil {
		p.t.Errorf("%s: %v", method, err)
	}
	if err != nil {
		return nil
	}
	return res
}

// post implements chaosLink.
func (p *streamablePeer) post(msgs ...string) {
	for _, raw := range msgs {
		p.wg.Go(func() { p.exchange(raw) }) // ends with the answer
	}
}

// exchange posts a message and takes what the response has: progress of the request, if it
// is one, and its answer.
func (p *streamablePeer) exchange(raw string) {
	m, err := jsonrpc.Parse([]byte(raw))
	if err != nil {
		p.t.Errorf("parse %.80s: %v", raw, err)
		return
	}
	res := p.request(http.MethodPost, raw)
	if res == nil || m.Kind != jsonrpc.Request || res.StatusCode != http.StatusOK {
		p.checkRefusal(m, res)
		return
	}
	p.mu.Lock()
	p.asked[string(m.ID)]++
	p.mu.Unlock()
	p.read(res, m)
}

// read takes the messages of a response to a request, or of the session's own stream.
func (p *streamablePeer) read(res *http.Response, request *jsonrpc.Message) {
	if res == nil {
		return
	}
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "application/json" && request != nil {
		body, _ := io.ReadAll(res.Body)
		p.receive(request, body)
		return
	}
	for in := bufio.NewReader(res.Body); ; {
		e, err := ssetest.Read(in)
		if err != nil {
			return
		}
		if !e.IsComment() && e.Data != "" {
			p.receive(request, []byte(e.Data))
		}
	}
}

// checkRefusal checks the response to a message without an answer: the request's id is in
// flight, or the session over.
func (p *streamablePeer) checkRefusal(m *jsonrpc.Message, res *http.Response) {
	if res == nil {
		return
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	switch {
	case m.Kind != jsonrpc.Request, res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusServiceUnavailable:
	case res.StatusCode == http.StatusBadRequest && strings.Contains(string(body), "in flight"):
	default:
		p.t.Errorf("request %s: %s %s", m.ID, res.Status, body)
	}
}

// receive notes a message of the response to a request, or of the session's own stream.
func (p *streamablePeer) receive(request *jsonrpc.Message, data []byte) {
	m, err := jsonrpc.Parse(data)
	if err != nil {
		p.t.Errorf("got %s: %v", data, err)
		return
	}
	about, isProgress := rawjson.Member(m.Params(), "progressToken")
	own := request != nil && m.ID == request.ID
	if isProgress && request != nil {
		token, _ := rawjson.Member(request.Params(), "_meta", "progressToken")
		own = string(about) == string(token)
	}
	if (m.Kind == jsonrpc.Response || isProgress) && !own {
		p.t.Errorf("%s came in the response to %+v", data, request)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, connstate.Event{Name: connstate.EventMessage, Data: data})
}

// received implements chaosLink.
func (p *streamablePeer) received() []connstate.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// due implements chaosLink.
func (p *streamablePeer) due(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[id]
}

// connection implements chaosLink.
func (p *streamablePeer) connection() *connstate.Connection {
	c, _ := p.g.Registry().Find(p.session)
	return c
}

// leave implements chaosLink: the client ends its session, or is just gone.
func (p *streamablePeer) leave() {
	if p.ends {
		if res := p.request(http.MethodDelete, ""); res != nil {
			res.Body.Close()
		}
	}
	p.cancel()
	p.wg.Wait()
}

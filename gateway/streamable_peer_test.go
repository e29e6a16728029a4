package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// streamablePeer is a client over Streamable HTTP whose responses break at random. It
// comes back for the rest of those whose events it has seen.
type streamablePeer struct {
	t       testing.TB
	g       *gateway.Gateway
	srv     *pipetest.Server
	draw    func(n int) int
	session string

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	got   []connstate.Event // guarded by mu
	posts int               // guarded by mu: with requests
	asked map[string]int    // guarded by mu: POSTs that were not refused, by the id of a request
	lost  map[string]int    // guarded by mu: those whose answer the client cannot get
	cuts  map[string]int    // guarded by mu: those that were cut
	stray map[string]int    // guarded by mu: progress that came elsewhere than with its request
}

// connectStreamable opens a session with its own stream: by initialize, or by another
// request, with another version.
func connectStreamable(t testing.TB, g *gateway.Gateway, srv *pipetest.Server, draw func(n int) int) *streamablePeer {
	p := &streamablePeer{t: t, g: g, srv: srv, draw: draw, asked: map[string]int{}, lost: map[string]int{},
		cuts: map[string]int{}, stray: map[string]int{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	for p.session == "" { // a start may fail
		opening := request(`"open"`, "ping2")
		if draw(2) == 0 {
			opening = initialize(`"open"`, "2025-11-25", "{}")
		}
		res := p.request(p.ctx, http.MethodPost, opening)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if !strings.Contains(opening, "initialize") || bytes.Contains(body, []byte("protocolVersion")) {
			p.session = res.Header.Get("Mcp-Session-Id")
		}
	}
	p.wg.Go(p.listen) // ends with leave, or the session
	return p
}

// request sends a request that must not fail, unless ctx ends.
func (p *streamablePeer) request(ctx context.Context, method, body string, header ...string) *http.Response {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost/mcp", strings.NewReader(body))
	if err != nil {
		p.t.Errorf("request: %v", err)
		return nil
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := p.srv.Client.Do(req)
	if err != nil && ctx.Err() == nil {
		p.t.Errorf("%s: %v", method, err)
	}
	if err != nil {
		return nil
	}
	return res
}

// receive notes a message of the response to a POST of requests with these ids; none for
// the session's own stream.
func (p *streamablePeer) receive(data []byte, ids map[string]bool) {
	m, err := jsonrpc.Parse(data)
	if err != nil {
		p.t.Errorf("got %s: %v", data, err)
		return
	}
	if m.Kind == jsonrpc.Response {
		if waiting, asked := ids[string(m.ID)]; !asked || !waiting {
			p.t.Errorf("the answer %s came in the response to %v", data, ids)
			return
		}
		ids[string(m.ID)] = false
	}
	if token, ok := jsonrpc.Member(m.Params(), "progressToken"); ok {
		if _, own := ids[strings.Trim(string(token), `"`)]; !own {
			p.count(p.stray, strings.Trim(string(token), `"`))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, connstate.Event{Name: connstate.EventMessage, Data: data})
}

// read takes the messages of a response, until it ends. The events must follow the event
// last, unless that is empty. It returns the id of the last one.
func (p *streamablePeer) read(res *http.Response, ids map[string]bool, last string) string {
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "application/json" {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return ""
		}
		messages := []json.RawMessage{body}
		if body[0] == '[' && json.Unmarshal(body, &messages) != nil {
			p.t.Errorf("got %s", body)
		}
		for _, m := range messages {
			p.receive(m, ids)
		}
		return ""
	}
	in := bufio.NewReader(res.Body)
	for {
		e, err := ssetest.Read(in)
		if err != nil {
			return last
		}
		if e.ID != "" {
			if want := next(last); last != "" && e.ID != want {
				p.t.Errorf("the event %s follows %s", e.ID, last)
			}
			last = e.ID
		}
		if !e.IsComment() && e.Data != "" {
			p.receive([]byte(e.Data), ids)
		}
	}
}

// next returns the id of the event after another one.
func next(id string) string {
	stream, number, _ := strings.Cut(id, "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return "a number after " + id
	}
	return stream + "-" + strconv.Itoa(n+1)
}

// listen reads the session's own stream, which breaks again and again.
func (p *streamablePeer) listen() {
	last := ""
	for p.ctx.Err() == nil {
		ctx, cut := context.WithTimeout(p.ctx, time.Duration(1+p.draw(20_000))*time.Millisecond)
		var header []string
		if p.draw(2) == 0 { // the server has it begin after what it has sent
			last = ""
		}
		if last != "" {
			header = []string{"Last-Event-ID", last}
		}
		res := p.request(ctx, http.MethodGet, "", header...)
		if res != nil && res.StatusCode != http.StatusOK { // the session is over
			res.Body.Close()
			cut()
			return
		}
		if res != nil {
			last = p.read(res, nil, last)
		}
		cut()
	}
}

// post implements chaosLink.
func (p *streamablePeer) post(msgs ...string) {
	for _, raw := range msgs {
		m, err := jsonrpc.Parse([]byte(raw))
		if err != nil {
			p.t.Fatalf("parse %.80s: %v", raw, err)
		}
		cut := time.Duration(0)
		if p.draw(3) == 0 && m.ID != `"again"` && m.ID != `"well"` {
			cut = time.Duration(1+p.draw(4000)) * time.Millisecond
		}
		pause := time.Duration(p.draw(2000)) * time.Millisecond
		if m.Kind != jsonrpc.Request {
			p.wg.Go(func() { // ends at once
				if res := p.request(p.ctx, http.MethodPost, raw); res != nil {
					res.Body.Close()
				}
			})
			continue
		}
		p.wg.Go(func() { p.exchange(string(m.ID), raw, cut, pause) }) // ends with the answer
	}
}

// exchange posts a request and gets the answer. The response breaks after the time cut,
// if that is not 0; then the client comes back after a pause.
func (p *streamablePeer) exchange(id, raw string, cut, pause time.Duration) {
	p.mu.Lock()
	p.posts++
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	if cut > 0 {
		p.count(p.cuts, id)
		defer time.AfterFunc(cut, cancel).Stop()
	}
	res := p.request(ctx, http.MethodPost, raw)
	if res != nil && res.StatusCode != http.StatusOK { // its id is in flight, or the session over
		p.refused(id, res)
		return
	}
	p.count(p.asked, id)
	ids, last := map[string]bool{id: true}, ""
	if res != nil {
		last = p.read(res, ids, "")
	}
	for ids[id] && last != "" && p.ctx.Err() == nil {
		if ctx.Err() == nil {
			p.t.Errorf("the response to %s ended without the answer", id)
		}
		time.Sleep(pause)
		again, cancel := context.WithTimeout(p.ctx, time.Duration(1+p.draw(10_000))*time.Millisecond)
		res := p.request(again, http.MethodGet, "", "Last-Event-ID", last)
		if res != nil && res.StatusCode != http.StatusOK {
			p.refused("", res)
			cancel()
			break
		}
		if res != nil {
			last = p.read(res, ids, last)
		}
		cancel()
	}
	if !ids[id] {
		return
	}
	p.count(p.lost, id)
	if cut == 0 && p.ctx.Err() == nil {
		p.t.Errorf("nothing was cut, and the answer to %s did not come", id)
	}
}

// refused checks the status of a refusal. A session keeps no more than 64 streams.
func (p *streamablePeer) refused(id string, res *http.Response) {
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusServiceUnavailable:
	case res.StatusCode == http.StatusBadRequest && id != "" && strings.Contains(string(body), "in flight"):
	case res.StatusCode == http.StatusBadRequest && id == "" && p.posts > 64:
	default:
		p.t.Errorf("request %s: %s %s", id, res.Status, body)
	}
}

func (p *streamablePeer) count(in map[string]int, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in[id]++
}

// received implements chaosLink.
func (p *streamablePeer) received() []connstate.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]connstate.Event(nil), p.got...)
}

// due implements chaosLink.
func (p *streamablePeer) due(id string) (least, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[id] - p.lost[id], p.asked[id]
}

// connection implements chaosLink.
func (p *streamablePeer) connection() *connstate.Connection {
	c, _ := p.g.Registry().Find(p.session)
	return c
}

// leave implements chaosLink: the client ends its session, or is just gone.
func (p *streamablePeer) leave() {
	if p.draw(2) == 0 {
		if res := p.request(p.ctx, http.MethodDelete, ""); res != nil {
			res.Body.Close()
		}
	}
	p.cancel()
	p.wg.Wait()
	for id, n := range p.stray {
		if p.cuts[id] == 0 {
			p.t.Errorf("%d progress of request %s came elsewhere, though its response was not cut", n, id)
		}
	}
}

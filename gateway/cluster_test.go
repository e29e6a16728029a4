package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// replicas are clusters in this process: each node calls the handlers of the others.
type replicas struct {
	mu        sync.Mutex
	nodes     []*node
	forwarded int
}

// node is the httpcheck.Cluster of one replica. It never dies, but can be down for the others.
type node struct {
	all *replicas
	id  string

	parts   []*httpcheck.Part // guarded by all.mu
	adopted map[string]bool   // guarded by all.mu
	down    bool              // guarded by all.mu
}

func (all *replicas) join() *node {
	n := &node{all: all, id: fmt.Sprintf("REPLICA%d", len(all.nodes)), adopted: map[string]bool{}}
	all.nodes = append(all.nodes, n)
	return n
}

func (n *node) ID() string { return n.id }

func (n *node) Close() {}

func (n *node) Attach(_ string, part httpcheck.Part) func() {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.parts = append(n.parts, &part)
	return func() {
		n.all.mu.Lock()
		defer n.all.mu.Unlock()
		n.parts = slices.DeleteFunc(n.parts, func(p *httpcheck.Part) bool { return p == &part })
	}
}

// part returns the part for a request, nil if the replica is not to serve it.
func (n *node) part(id string, owner bool) *httpcheck.Part {
	if n.down || len(n.parts) == 0 {
		return nil
	}
	for _, p := range n.parts {
		if p.Has(id) {
			return p
		}
	}
	if last := n.parts[len(n.parts)-1]; owner && !last.Draining() {
		return last
	}
	return nil
}

// find returns the part that is to serve a request; nil: none, or n itself.
func (n *node) find(f httpcheck.Forward) *httpcheck.Part {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	for _, other := range n.all.nodes {
		if owner := strings.HasPrefix(f.ID, other.id+"."); owner || other.adopted[f.ID] {
			if p := other.part(f.ID, true); p != nil && other != n {
				return p
			} else if p != nil && !p.Draining() {
				return nil
			}
		}
	}
	for _, other := range n.all.nodes {
		if p := other.part(f.ID, true); f.Resumes && p != nil && !p.Draining() {
			if other == n {
				return nil
			}
			return p
		}
	}
	return nil
}

func (n *node) Forward(w http.ResponseWriter, r *http.Request, f httpcheck.Forward) (served bool) {
	p := n.find(f)
	if p == nil {
		return false
	}
	n.all.mu.Lock()
	n.all.forwarded++
	n.all.mu.Unlock()
	returned := false
	ctx := context.WithValue(httpcheck.Forwarded(r.Context(), f.Principal), returnedKey{}, &returned)
	own := r.Clone(ctx)
	own.Header.Del("Authorization") // the owner must not want it
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(f.Body)), int64(len(f.Body))
	own.RemoteAddr = netip.AddrPortFrom(f.Addr, 0).String()
	p.Handler.ServeHTTP(w, own)
	return !returned
}

type returnedKey struct{}

func (n *node) Return(_ http.ResponseWriter, r *http.Request) {
	*r.Context().Value(returnedKey{}).(*bool) = true
}

func (n *node) Adopt(_, id string) func() {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.adopted[id] = true
	return func() {
		n.all.mu.Lock()
		defer n.all.mu.Unlock()
		delete(n.adopted, id)
	}
}

func (n *node) Replicas() (list []httpcheck.Replica) {
	for _, other := range n.all.nodes {
		list = append(list, httpcheck.Replica{Name: strings.ToLower(other.id), ID: other.id, Silent: other != n})
	}
	return list
}

func (n *node) setDown(down bool) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.down = down
}

func (all *replicas) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.forwarded
}

// named is a server that answers each request with its name, and "ask" when the client has
// answered a question.
func named(name string) *server {
	var mu sync.Mutex
	asked := map[*serverSession]*jsonrpc.Message{}
	return &server{capabilities: `{"tools":{}}`, handle: func(s *serverSession, m *jsonrpc.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case m.Method == "tools/call":
			asked[s] = m
			s.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`)
		case m.Kind == jsonrpc.Response && asked[s] != nil:
			s.say(string(jsonrpc.NewResult(asked[s].ID, []byte(`{"content":[],"replica":"`+name+`"}`))))
		case m.Kind == jsonrpc.Request && m.Method != "initialize":
			s.say(string(jsonrpc.NewResult(m.ID, []byte(`{"replica":"`+name+`"}`))))
		default:
			return false
		}
		return true
	}}
}

var clusterKey = []byte(strings.Repeat("k", 32))

func clustered(n *node) gateway.Options {
	return gateway.Options{Cluster: n, IDKey: clusterKey, Authenticate: func(r *http.Request) (string, error) {
		if p := r.Header.Get("Authorization"); p != "" {
			return p, nil
		}
		return "", errors.New("who?")
	}}
}

// two returns two replicas that serve.
func two(t *testing.T) (all *replicas, at [2]string, gs [2]*gateway.Gateway, c *http.Client) {
	all = &replicas{}
	nodes := []*node{all.join(), all.join()}
	for i, n := range nodes {
		at[i], c, gs[i] = serve(t, named(n.id), clustered(n))
	}
	t.Cleanup(func() { // or Shutdown would wait for them
		for _, c := range slices.Concat(gs[0].Registry().All(), gs[1].Registry().All()) {
			c.Close(connstate.ClosedClient)
		}
	})
	return all, at, gs, c
}

// send sends a request of ada, and returns the status, the session and the body.
func send(t *testing.T, c *http.Client, method, at, body string, header ...string) (status int, session, got string) {
	t.Helper()
	res, err := c.Do(ssetest.Request(t.Context(), method, at, body, append([]string{"Authorization", "ada"}, header...)...))
	must(t, err)
	defer res.Body.Close()
	all, _ := io.ReadAll(res.Body)
	return res.StatusCode, res.Header.Get("Mcp-Session-Id"), string(all)
}

// sends is a POST whose answer must have a status and a text.
func sends(t *testing.T, c *http.Client, status int, text, at, body string, header ...string) {
	t.Helper()
	got, _, answer := send(t, c, http.MethodPost, at, body, header...)
	equal(t, "status of "+at, got, status)
	wantText(t, "answer at "+at, answer, text)
}

// Messages for a stream may go to any replica, but not those of somebody else.
func TestClusterServesMessagesForStreams(t *testing.T) {
	all, at, _, c := two(t)
	s := ssetest.Open(t, c, at[0]+"/sse", http.Header{"Authorization": {"ada"}})
	path := strings.TrimPrefix(s.Post, at[0])
	for i, to := range []string{at[1], at[0], at[1]} {
		sends(t, c, http.StatusAccepted, "", to+path, request(fmt.Sprint(i), "who"))
		if e, err := s.Until(fmt.Sprintf(`"id":%d`, i)); err != nil || !strings.Contains(e.Data, "REPLICA0") {
			t.Errorf("message %d: got %s, %v", i, e.Data, err)
		}
	}
	equal(t, "requests were forwarded", all.count(), 2)
	for name, who := range map[string]string{"somebody else": "eve", "nobody": ""} {
		status, _, _ := send(t, c, http.MethodPost, at[1]+path, request("9", "who"), "Authorization", who)
		if status/100 != 4 || all.count() != 2 {
			t.Errorf("%s: %d, %d forwarded", name, status, all.count())
		}
	}
	forged := strings.Replace(path, "REPLICA0", "REPLICA1", 1)
	sends(t, c, http.StatusNotFound, "", at[1]+forged, request("9", "who"))
	equal(t, "requests were forwarded, without the forged one", all.count(), 2)
	sends(t, c, http.StatusBadRequest, "", at[1]+path, "no JSON")
	sends(t, c, http.StatusRequestEntityTooLarge, "", at[1]+path, `"`+strings.Repeat("x", 5<<20)+`"`)
	all.nodes[0].setDown(true)
	sends(t, c, http.StatusNotFound, "no such connection", at[1]+path, request("9", "who"))
}

// A session is one at all replicas. When its own is gone, another goes on with it, and is
// found by the others.
func TestClusterServesSessions(t *testing.T) {
	all, at, gs, c := two(t)
	third, _, _ := serve(t, named("third"), clustered(all.join()))
	_, id, _ := send(t, c, http.MethodPost, at[0]+"/mcp", initialize("1", "2025-11-25", "{}"))
	if !strings.HasPrefix(id, "REPLICA0.") {
		t.Fatalf("the session is %q", id)
	}
	who := func(at, want string) {
		t.Helper()
		sends(t, c, http.StatusOK, want, at+"/mcp", request("2", "who"), "Mcp-Session-Id", id)
	}
	for _, to := range []string{at[1], at[0], third} {
		who(to, "REPLICA0")
	}
	all.nodes[0].setDown(true)
	who(third, "REPLICA1") // the first of those left
	who(at[1], "REPLICA1")
	equal(t, "sessions at the second replica", gs[1].Registry().Len(), 1)
	who(third, "REPLICA1")
	status, _, _ := send(t, c, http.MethodDelete, third+"/mcp", "", "Mcp-Session-Id", id)
	equal(t, "DELETE", status, http.StatusNoContent)
	adopted := func() int {
		all.mu.Lock()
		defer all.mu.Unlock()
		return len(all.nodes[1].adopted)
	}
	for adopted() > 0 { // it is given up once the session has ended, a moment after the answer
		runtime.Gosched()
	}
	sends(t, c, http.StatusNotFound, "", third+"/mcp", request("3", "who"), "Mcp-Session-Id", id)
}

// The stream of a session can be read at any replica.
func TestClusterServesTheStreamOfASession(t *testing.T) {
	all, at, gs, c := two(t)
	_, id, _ := send(t, c, http.MethodPost, at[0]+"/mcp", initialize("1", "2025-11-25", "{}"))
	res, err := c.Do(ssetest.Request(t.Context(), http.MethodGet, at[1]+"/mcp", "", "Authorization", "ada", "Mcp-Session-Id", id))
	if err != nil || res.StatusCode != http.StatusOK || all.count() != 1 {
		t.Fatalf("GET: %v, %v", res, err)
	}
	for _, conn := range gs[0].Registry().All() {
		conn.Close(connstate.ClosedClient)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	res.Body.Close()
	equal(t, "sessions at the second replica", gs[1].Registry().Len(), 0)
}

// Input for a call that waits reaches it from any replica, once.
func TestClusterServesInputForAWaitingCall(t *testing.T) {
	all, at, _, c := two(t)
	call := func(to, more string) map[string]json.RawMessage {
		t.Helper()
		_, _, body := send(t, c, http.MethodPost, to+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",`+more+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "x")
		var answer struct{ Result map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("got %s", body)
		}
		return answer.Result
	}
	state := string(call(at[0], "")["requestState"])
	if !strings.HasPrefix(state, `"REPLICA0.`) {
		t.Fatalf("the state is %s", state)
	}
	input := `"inputResponses":{"elicitation-1":{"action":"decline"}},"requestState":` + state + `,`
	equal(t, "answered by", string(call(at[1], input)["replica"]), `"REPLICA0"`)
	equal(t, "forwarded", all.count(), 1)
	if got := call(at[1], input); got != nil {
		t.Errorf("again: %v", got)
	}
}

// A replica that shuts down serves its sessions until each moves, cuts no call that ends in
// time, and no client gets an error.
func TestClusterDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &replicas{}
		var srv [2]*pipetest.Server
		var gs [2]*gateway.Gateway
		for i := range gs {
			u := &server{handle: on("work", late(14*time.Second))}
			opts := clustered(all.join())
			opts.Authenticate = nil
			var err error
			if gs[i], err = gateway.New(u, opts); err != nil {
				t.Fatal(err)
			}
			srv[i] = pipetest.Serve(gs[i], nil, nil)
			defer srv[i].Stop()
		}
		var peers []*streamablePeer
		for range 20 {
			p := connectStreamable(t, gs[0], srv[0], func(int) int { return 1 })
			p.post(request("1", "work"))
			synctest.Wait()
			p.srv = srv[1] // the balancer sends nothing more to the first one
			peers = append(peers, p)
		}
		start, done := time.Now(), shutdown(gs[0], 15*time.Second)
		for i := 2; time.Since(start) < 16*time.Second; i++ {
			for _, p := range peers {
				p.post(request(fmt.Sprint(i), "tools/list"))
			}
			time.Sleep(time.Second)
		}
		equal(t, "error", <-done, nil)
		for n, p := range peers {
			answers := map[string]int{}
			for _, e := range p.received() {
				if m, err := jsonrpc.Parse(e.Data); err == nil && m.Result() != nil {
					answers[string(m.ID)]++
				}
			}
			for i := range 17 {
				equal(t, fmt.Sprintf("client %d: results of request %d", n, i+1), answers[fmt.Sprint(i+1)], 1)
			}
			p.leave()
		}
		if n := gs[0].Registry().Len(); n != 0 || gs[1].Registry().Len() == 0 {
			t.Errorf("%d sessions are left, %d at the other replica", n, gs[1].Registry().Len())
		}
		equal(t, "error", gs[1].Shutdown(t.Context()), nil)
	})
}

// held calls a function when the handler of a POST has its session, and has not passed the
// request on yet.
type held struct {
	http.ResponseWriter
	then func()
}

func (w held) Unwrap() http.ResponseWriter {
	if strings.Contains(string(debug.Stack()), "httpanswer.CanFlush") {
		w.then()
	}
	return w.ResponseWriter
}

// A request that has found its session is served, although the session then begins to drain.
func TestClusterServesARequestThatCameBeforeTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := clustered((&replicas{}).join())
		opts.Authenticate = nil
		g, err := gateway.New(named("one"), opts)
		must(t, err)
		post := func(body, id string, then func()) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			g.ServeHTTP(held{w, then}, ssetest.Request(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", body, "Mcp-Session-Id", id))
			return w
		}
		id := post(initialize("1", "2025-11-25", "{}"), "", func() {}).Header().Get("Mcp-Session-Id")
		var done <-chan error
		w := post(request("2", "who"), id, func() {
			done = shutdown(g, 15*time.Second)
			for synctest.Wait(); !g.Registry().All()[0].Leaving(); synctest.Wait() {
				time.Sleep(time.Millisecond)
			}
		})
		wantText(t, "answer", w.Body.String(), `"replica":"one"`)
		equal(t, "error", <-done, nil)
	})
}

// A request for a session that ends on its way to a replica that drains goes elsewhere.
func TestClusterForwardsToASessionThatHasJustEnded(t *testing.T) {
	all, at, gs, c := two(t)
	_, id, _ := send(t, c, http.MethodPost, at[0]+"/mcp", initialize("1", "2025-11-25", "{}"))
	part := *all.nodes[0].parts[0]
	all.nodes[0].parts[0].Has = func(string) bool { return true } // as it was when the request came
	for _, conn := range gs[0].Registry().All() {
		conn.Close(connstate.ClosedClient)
	}
	gs[0].Drain()
	if part.Has(id) {
		t.Fatal("the session is still there")
	}
	sends(t, c, http.StatusOK, "REPLICA1", at[1]+"/mcp", request("2", "who"), "Mcp-Session-Id", id)
}

// question opens a call that waits for an answer of the client, and returns that answer, and
// the stream behind the question.
func question(t *testing.T, c *http.Client, at, id string) (answer string, stream *bufio.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a test that waits in vain fails, and does not hang
	t.Cleanup(cancel)
	res, err := c.Do(ssetest.Request(ctx, http.MethodPost, at+"/mcp", request("2", "tools/call"), "Authorization", "ada", "Mcp-Session-Id", id))
	must(t, err)
	t.Cleanup(func() { res.Body.Close() })
	stream = bufio.NewReader(res.Body)
	for {
		line, err := stream.ReadString('\n')
		must(t, err)
		data, _ := strings.CutPrefix(line, "data:")
		if m, err := jsonrpc.Parse([]byte(strings.TrimSpace(data))); err == nil && m.Method == "elicitation/create" {
			return string(jsonrpc.NewResult(m.ID, []byte(`{"action":"decline"}`))), stream
		}
	}
}

// drain drains a replica and its sessions now.
func drain(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	g.Drain()
	for _, c := range g.Registry().All() {
		_, err := c.Drain()
		must(t, err)
	}
}

// A call of a session that drains gets the answers to its questions wherever they arrive. New
// requests move; while one is served elsewhere, the session can end, and does not cut it.
func TestClusterMovesASessionThatDrains(t *testing.T) {
	for i := range 2 {
		all, at, gs, c := two(t)
		_, id, _ := send(t, c, http.MethodPost, at[0]+"/mcp", initialize("1", "2025-11-25", `{"elicitation":{}}`))
		answer, call := question(t, c, at[0], id)
		drain(t, gs[0])
		sends(t, c, http.StatusAccepted, "", at[i]+"/mcp", answer, "Mcp-Session-Id", id)
		if rest, err := io.ReadAll(call); err != nil || !strings.Contains(string(rest), `"replica":"REPLICA0"`) {
			t.Errorf("the call: %s, %v", rest, err)
		}
		next := all.nodes[1].parts[0].Handler
		all.nodes[1].parts[0].Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, conn := range gs[0].Registry().All() {
				conn.Close(connstate.ClosedShutdown)
			}
			equal(t, "sessions are held by requests that others serve", gs[0].Registry().Len(), 0)
			next.ServeHTTP(w, r)
		})
		sends(t, c, http.StatusOK, "REPLICA1", at[0]+"/mcp", request("3", "who"), "Mcp-Session-Id", id)
	}
}

// stalled is a client that takes nothing.
type stalled struct {
	*httptest.ResponseRecorder
	begun, over chan struct{}
}

func (w stalled) Write(p []byte) (int, error) {
	select {
	case w.begun <- struct{}{}:
	case <-w.over:
	}
	<-w.over
	return len(p), nil
}

// A session that is closed moves also while one of its responses is still written.
func TestClusterMovesASessionThatIsClosed(t *testing.T) {
	_, at, gs, c := two(t)
	_, id, _ := send(t, c, http.MethodPost, at[0]+"/mcp", initialize("1", "2025-11-25", `{"elicitation":{}}`))
	w := stalled{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	r := ssetest.Request(t.Context(), http.MethodPost, "/mcp", request("2", "tools/call"), "Authorization", "ada", "Mcp-Session-Id", id)
	var serving sync.WaitGroup
	serving.Go(func() { gs[0].ServeHTTP(w, r) })
	<-w.begun
	gs[0].Drain()
	for _, conn := range gs[0].Registry().All() {
		conn.Close(connstate.ClosedShutdown)
	}
	for _, to := range []string{at[0], at[1]} {
		sends(t, c, http.StatusOK, "REPLICA1", to+"/mcp", request("3", "who"), "Mcp-Session-Id", id)
		equal(t, "sessions that are left", gs[0].Registry().Len(), 1)
	}
	close(w.over)
	serving.Wait()
}

// A replica that shuts down lets its sessions initialize first, as their requests wait for that.
func TestClusterDrainsOnceInitialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &server{handle: on("initialize", late(10*time.Second))}
		opts := clustered((&replicas{}).join())
		opts.InitializationTimeout = time.Minute
		opts.Authenticate = nil
		g, err := gateway.New(u, opts)
		must(t, err)
		srv := pipetest.Serve(g, nil, nil)
		defer srv.Stop()
		done := make(chan error, 1)
		time.AfterFunc(time.Second, func() { done <- <-shutdown(g, 11*time.Second) })
		if _, _, body := send(t, srv.Client, http.MethodPost, "http://localhost/mcp", request("1", "tools/list")); !strings.Contains(body, `"result"`) {
			t.Errorf("got %s", body)
		}
		equal(t, "error", <-done, nil)
	})
}

func TestReplicasAreShown(t *testing.T) {
	_, _, gs, _ := two(t)
	_, body := ask(gs[1].Admin(), "/connections")
	if want := `"replicas":[{"name":"replica0","id":"REPLICA0","connections":0,"silent":true},{`; !strings.Contains(body, want) {
		t.Errorf("got %s", body)
	}
	asks(t, gs[0].Admin(), "/status", 200, "Replicas <small>2")
}

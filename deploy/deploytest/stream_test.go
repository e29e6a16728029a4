//go:build deploy

package deploytest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// stream is a client of HTTP+SSE that never initializes, as simple ones do not: its stream
// stays while its server fails.
type stream struct {
	t        *testing.T
	server   string
	endpoint string       // URL for POSTs
	answers  chan message // to requests, one at a time
	ended    atomic.Bool
	close    func() // more than once does no harm
	id       int
}

type message struct {
	ID     any
	Result json.RawMessage
	Error  json.RawMessage
}

// openStreams opens so many streams to each server, all at once.
func openStreams(t *testing.T, g *gateway, counts map[string]int) (all []*stream) {
	t.Helper()
	for server, n := range counts {
		for range n {
			all = append(all, openStream(t, g, server))
		}
	}
	return all
}

// ask asks for a stream of a server.
func (g *gateway) ask(server string) *http.Response {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, "http://"+g.addr+"/"+server+"/sse", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp
}

func openStream(t *testing.T, g *gateway, server string) *stream {
	t.Helper()
	resp := g.ask(server)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("a stream of %s: %s", server, resp.Status)
	}
	s := &stream{t: t, server: server, answers: make(chan message, 16)}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for s.endpoint == "" && lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			s.endpoint = "http://" + g.addr + path
		}
	}
	if s.endpoint == "" {
		t.Fatalf("a stream of %s ended without an endpoint: %v", server, lines.Err())
	}
	done := make(chan struct{})
	go func() { // ends with the stream, which the cleanup ends
		defer close(done)
		defer s.ended.Store(true)
		for lines.Scan() {
			var m message
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &m) == nil && (m.Result != nil || m.Error != nil) {
				s.answers <- m
			}
		}
	}()
	s.close = func() {
		resp.Body.Close()
		<-done
	}
	t.Cleanup(s.close)
	return s
}

// call calls the tool of the demo server that echoes, and reports whether the answer is
// right. Some answer must come.
func (s *stream) call() bool {
	s.t.Helper()
	id := fmt.Sprint("call ", s.id+1)
	s.post("echo", fmt.Sprintf(`{"message":%q}`, id))
	for deadline := time.After(patience); ; {
		select {
		case m := <-s.answers:
			if m.ID == id { // others are of the handshake
				return strings.Contains(string(m.Result), id)
			}
		case <-deadline:
			s.t.Fatalf("no answer of %s in %v", s.server, patience)
		}
	}
}

// post sends a call of a tool.
func (s *stream) post(tool, arguments string) {
	s.t.Helper()
	s.id++
	id := fmt.Sprint("call ", s.id)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.endpoint, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	refusal, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		s.t.Fatalf("%s: %s: %s", s.server, resp.Status, refusal)
	}
}

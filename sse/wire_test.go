package sse_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/sse"
)

// announce makes a fixture whose backend announces itself at once.
func announce(f *fixture, g *get) {
	g.c.Announce([]byte(`{"jsonrpc":"2.0","id":"auto-initialize-`+g.c.ID()+`","result":{}}`), func(error) {})
}

func TestStreamBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		g := f.open(t, "/sse")
		announce(f, g)
		synctest.Wait()
		id := g.c.ID()
		want := "id: 1\nevent: endpoint\ndata: /sse/" + id + "/message\n\n" +
			"id: 2\ndata: " + `{"jsonrpc":"2.0","method":"notifications/connection","params":{"connectionId":"` + id +
			`","state":"initializing","heartbeatSeconds":15}}` + "\nevent: connection\nretry: 1000\n\n"
		if got := g.text(); got != want {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
		time.Sleep(99 * time.Millisecond)
		synctest.Wait()
		if got := g.text(); got != want {
			t.Fatalf("the announcement came too early: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		_ = g.c.Send("", []byte(`{"n":1}`))
		synctest.Wait()
		want += "id: 3\ndata: " + `{"jsonrpc":"2.0","id":"auto-initialize-` + id + `","result":{}}` + "\nevent: mcp-response\n\n" +
			"id: 4\ndata: {\"n\":1}\nevent: message\n\n"
		ssetest.Want(t, "stream", g.text(), want)
		g.leave()
	})
}

// One client loses what shares a TCP segment with the endpoint: the head and
// the endpoint event leave in one, and nothing else does.
func TestFirstSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{})
		p := pipetest.Serve(f, protocols("h1"), nil)
		defer p.Stop()
		conn := p.Dial()
		defer conn.Close()
		fmt.Fprint(conn, "GET /sse HTTP/1.1\r\nHost: gateway\r\n\r\n")
		segment := make([]byte, 64<<10)
		n, err := conn.Read(segment)
		ssetest.Must(t, err)
		c := <-f.backend.accepted
		event := "id: 1\nevent: endpoint\ndata: /sse/" + c.ID() + "/message\n\n"
		head, body, _ := strings.Cut(string(segment[:n]), "\r\n\r\n")
		if want := fmt.Sprintf("%x\r\n%s\r\n", len(event), event); body != want {
			t.Errorf("got %q beside the head, want %q", body, want)
		}
		if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || strings.Contains(head, "\r\nConnection:") {
			t.Errorf("got the head %q", head)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		c.Close(connstate.ClosedShutdown)
	})
}

func TestStreamHeaders(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		f := newFixture(t, config{})
		p := pipetest.Serve(f, protocols(protocol), nil)
		defer p.Stop()
		r := openStream(t, p.Client, "http://gateway/sse", f)
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform",
			"X-Accel-Buffering": "no", "X-Connection-Id": r.c.ID(), "Connection": "", "Content-Length": "",
			"Access-Control-Allow-Origin": "", "Content-Encoding": "",
		} {
			ssetest.Want(t, name, strings.Join(r.Header.Values(name), "|"), want)
		}
		r.Body.Close()
	})
}

func TestConnectionEvent(t *testing.T) {
	for _, test := range []struct {
		opts  sse.Options
		data  string
		retry string
	}{
		{sse.Options{Options: httpcheck.Options{HeartbeatInterval: -1}}, `"heartbeatSeconds":0}}`, "1000"},
		{sse.Options{Options: httpcheck.Options{HeartbeatInterval: 1500 * time.Millisecond, ReconnectDelay: 250 * time.Millisecond}}, `"heartbeatSeconds":1.5}}`, "250"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, config{sse: test.opts})
			g := f.open(t, "/sse")
			synctest.Wait()
			g.leave()
			e := parse(t, g.text())[1]
			if !strings.HasSuffix(e.Data, test.data) || e.Retry != test.retry {
				t.Errorf("got %+v, want %s and retry %s", e, test.data, test.retry)
			}
		})
	}
}

func TestQueryAndHeadersOfTheGET(t *testing.T) {
	for _, test := range []struct {
		name, target string
		header       []string
		opts         sse.Options
		want         string // events after one response
	}{
		{"undecided", "/sse", nil, sse.Options{}, "endpoint connection mcp-response message mcp-response"},
		{"message", "/sse?event=message", nil, sse.Options{}, "endpoint connection mcp-response message"},
		{"mcp-response", "/sse?event=mcp-response", nil, sse.Options{}, "endpoint connection mcp-response mcp-response"},
		{"configured", "/sse", nil, sse.Options{Dialect: "message"}, "endpoint connection mcp-response message"},
		{"query over configuration", "/sse?event=mcp-response", nil, sse.Options{Dialect: "message"}, "endpoint connection mcp-response mcp-response"},
		{"version header", "/sse", []string{"MCP-Protocol-Version", "2025-06-18"}, sse.Options{}, "endpoint connection mcp-response message"},
		{"auto=0", "/sse?auto=0", nil, sse.Options{}, "endpoint message mcp-response"},
		{"quiet", "/sse", nil, sse.Options{Quiet: true}, "endpoint message mcp-response"},
		{"quiet stays", "/sse?auto=1", nil, sse.Options{Quiet: true}, "endpoint message mcp-response"},
		{"Java", "/sse", []string{"User-Agent", "Java-http-client/17.0.9"}, sse.Options{}, "endpoint message mcp-response"},
		{"unknown query", "/sse?stream=x&token=y&%zz;=&a=b&a=c", nil, sse.Options{}, "endpoint connection mcp-response message mcp-response"},
		{"Last-Event-ID", "/sse", []string{"Last-Event-ID", "abc"}, sse.Options{}, "endpoint connection mcp-response message mcp-response"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, config{sse: test.opts})
				g := f.open(t, test.target, test.header...)
				announce(f, g)
				time.Sleep(time.Second)
				g.c.RespondNow("", []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
				synctest.Wait()
				g.leave()
				ssetest.Want(t, "events", names(parse(t, g.text())), test.want)
			})
		})
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// dial opens a TCP connection to the program that the test bounds.
func (p *program) dial(t *testing.T) net.Conn {
	t.Helper()
	u := clitest.Must(url.Parse(p.url))
	conn, err := net.Dial("tcp", u.Host)
	ssetest.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// startImpatient runs a daemon whose clients have read in place of 10 s to send a request,
// and 200 ms to take an answer.
func startImpatient(t *testing.T, read time.Duration) *program {
	t.Helper()
	d, err := newDaemon(mustLoad(t, nil, "--addr", "127.0.0.1:0"), nil, slog.New(slog.DiscardHandler), nil, &observe.AuditLog{}, &observe.Tracing{})
	if err == nil {
		err = d.listen()
	}
	ssetest.Must(t, err)
	server := d.endpoints[0].Server
	server.ReadTimeout, server.WriteTimeout, server.HTTP2.WriteByteTimeout = read, 200*time.Millisecond, 100*time.Millisecond
	served := make(chan error, 1)
	go func() { served <- d.endpoints[0].Serve() }()
	t.Cleanup(func() {
		d.shutDown(context.Background())
		<-served
	})
	return &program{t: t, url: "http://" + d.endpoints[0].Addr().String() + "/mcp"}
}

// Each address keeps an idle TCP connection as long as http-idle-timeout says.
func TestIdleConnectionsHaveTheirTimeout(t *testing.T) {
	for _, limit := range []time.Duration{20 * time.Minute, 3 * time.Second} {
		d, err := newDaemon(mustLoad(t, nil, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--http-idle-timeout", limit.String()),
			nil, slog.New(slog.DiscardHandler), nil, &observe.AuditLog{}, &observe.Tracing{})
		ssetest.Must(t, err)
		ssetest.Must(t, d.gw.Shutdown(t.Context()))
		ssetest.Want(t, "addresses", len(d.endpoints), 2)
		for _, e := range d.endpoints {
			ssetest.Want(t, "the timeout of "+e.Option, e.Server.IdleTimeout, limit)
		}
	}
}

// Each request has the read timeout from its first byte, on every route.
func TestHalfRequestsEnd(t *testing.T) {
	t.Parallel()
	p := startImpatient(t, time.Second)
	conns := map[string]net.Conn{}
	for name, sent := range map[string]string{
		"half a head":          "GET /sse HTTP/1.1\r\nHost: 127.",
		"half a body":          "POST /sse/x/message HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
		"a body for /healthz":  "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
		"a body for no route":  "PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
		"a head over 32 KiB":   "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 48<<10),
		"a path to be cleaned": "POST //healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
	} {
		conns[name] = p.dial(t)
		_, _ = io.WriteString(conns[name], sent) // the server may have ended the connection
	}
	for name, conn := range conns {
		if _, err := io.ReadAll(conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: the TCP connection stays open", name)
		}
	}
	if code, _ := get(t, newClient(t, &http.Transport{}), p.base()+"/healthz", ""); code != http.StatusOK {
		t.Error("the program does not answer any more")
	}
}

// A client of HTTP/2 whose window is 0 holds a goroutine of the server with each
// answer, until the write timeout.
func TestAnswersWithoutAWindowEnd(t *testing.T) {
	t.Parallel()
	p := startImpatient(t, time.Minute)
	client := ssetest.NewWindowless(p.dial(t))
	for range 50 {
		client.Send("/metrics", "")
	}
	ssetest.Must(t, client.AwaitResets())
}

// A stream keeps the head of its request, which has few fields.
func TestStreamsKeepLittleOfTheirHead(t *testing.T) {
	const streams, fields = 50, 120
	p := start(t, "--addr", "127.0.0.1:0", "--sessions", "shared")
	var head strings.Builder
	head.WriteString("?" + strings.Repeat("x", 4<<10) + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nUser-Agent: " + strings.Repeat("y", 2<<10) + "\r\n")
	for i := range fields {
		fmt.Fprintf(&head, "%x:\r\n", i)
	}
	var tooMany strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&tooMany, "x%x:\r\n", i)
	}
	tooLong := map[string]string{"many names": tooMany.String(), "one name": strings.Repeat("x:\r\n", 4000)}
	for path, opens := range map[string]bool{"/sse": false, "/mcp": true} {
		open := func() {
			session := ""
			if opens {
				body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
				resp, err := http.DefaultClient.Do(ssetest.Request(t.Context(), http.MethodPost, p.url, body))
				ssetest.Must(t, err)
				session = resp.Header.Get("Mcp-Session-Id")
				resp.Body.Close()
			}
			conn := p.dial(t)
			_, err := io.WriteString(conn, "GET "+path+head.String()+"Mcp-Session-Id: "+session+"\r\n\r\n")
			ssetest.Must(t, err)
			status := make([]byte, len("HTTP/1.1 200"))
			_, err = io.ReadFull(conn, status)
			ssetest.Must(t, err)
			ssetest.Want(t, path, string(status), "HTTP/1.1 200")
		}
		open() // starts the shared session
		before := ssetest.LiveHeap()
		for range streams {
			open()
		}
		if each := (ssetest.LiveHeap() - before) / streams; each > 100<<10 {
			t.Errorf("each stream of %s keeps %d KiB", path, each>>10)
		}
		for name, fields := range tooLong {
			conn := p.dial(t)
			_, err := io.WriteString(conn, "GET "+path+strings.Replace(head.String(), "Accept", fields+"Accept", 1)+"\r\n")
			ssetest.Must(t, err)
			status := make([]byte, len("HTTP/1.1 431"))
			_, err = io.ReadFull(conn, status)
			ssetest.Must(t, err)
			ssetest.Want(t, path+" with many fields of "+name, string(status), "HTTP/1.1 431")
		}
	}
}

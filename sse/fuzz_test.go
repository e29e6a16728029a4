package sse_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/sse"
)

// FuzzPath throws requests of all kinds at a handler with one open connection.
// Nothing may panic, no stream may be opened by anything but GET /sse, no
// message may be taken for another id than the one that exists, and a refusal is
// always a JSON-RPC error.
func FuzzPath(f *testing.F) {
	for _, seed := range []struct{ method, path, query, host, header, value, body string }{
		{"GET", "/sse", "", "localhost", "Accept", "text/event-stream", ""},
		{"GET", "/sse", "event=mcp-response&auto=0", "localhost", "Last-Event-ID", "abc", ""},
		{"GET", "/sse", "stream=x&event=%0a", "evil.example", "Origin", "null", ""},
		{"GET", "/sse", "auto=%zz;", "", "X-Forwarded-Prefix", "//evil.example\r\ndata: x", ""},
		{"GET", "/sse/", "", "[::1", "X-Forwarded-For", "::ffff:1.2.3.4, , [x", ""},
		{"POST", "/sse", "", "localhost", "Content-Type", "application/json", "{}"},
		{"POST", "/sse/ID/message", "", "localhost", "Content-Type", "application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{"POST", "/sse/ID/message", "", "localhost", "Content-Type", "application/json; charset=x\x00", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{"POST", "/sse/ID/message", "", "localhost", "Content-Encoding", "gzip", "\x1f\x8b"},
		{"POST", "/sse/00000000-0000-4000-8000-000000000000/message", "", "localhost", "Content-Type", "application/json", `{"jsonrpc":"2.0","method":"x"}`},
		{"POST", "/sse/../sse/ID/message", "", "localhost", "Content-Type", "application/json", "[]"},
		{"POST", "/sse/ID%00/message", "", "localhost", "Content-Type", "application/json", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","method":"x"}`},
		{"POST", "/sse/{id}/message", "x=y", "localhost", "Mcp-Protocol-Version", strings.Repeat("9", 500), "\xff"},
		{"OPTIONS", "//sse", "", "localhost", "Access-Control-Request-Method", "POST", ""},
		{"\x00", "/sse/ID/message/", "", "a:b:c", "Authorization", "Bearer \x00", "{\"jsonrpc\":\"2.0\"}"},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.host, seed.header, seed.value, seed.body)
	}
	fix := newFixture(f, config{sse: sse.Options{Options: front.Options{TrustForwardedPrefix: true, CORS: true, AllowedOrigins: []string{"*"}}}})
	open := fix.open(f, "/sse")
	<-open.started
	f.Cleanup(open.leave)
	f.Fuzz(func(t *testing.T, method, path, query, host, header, value, body string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		path = strings.ReplaceAll(path, "ID", open.c.ID())
		r := (&http.Request{
			Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: host, RequestURI: path + "?" + query,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "192.0.2.1:1", ContentLength: int64(len(body)),
			Header: http.Header{http.CanonicalHeaderKey(header): {value}}, Body: http.NoBody,
		}).WithContext(ctx)
		if body != "" {
			r.Body = httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)).Body
		}
		w := httptest.NewRecorder()
		fix.ServeHTTP(&briefly{w, cancel}, r)
		for len(fix.backend.accepted) > 0 {
			<-fix.backend.accepted
		}
		for len(fix.backend.closed) > 0 {
			<-fix.backend.closed
		}
		checkAnswer(t, r, w, open.c.ID())
	})
}

// briefly is a client that leaves after the first flush: a stream is over then.
type briefly struct {
	*httptest.ResponseRecorder
	leave func()
}

func (b *briefly) Flush() {
	b.ResponseRecorder.Flush()
	b.leave()
}

func checkAnswer(t *testing.T, r *http.Request, w *httptest.ResponseRecorder, id string) {
	t.Helper()
	text := w.Body.String()
	switch {
	case w.Code == http.StatusOK:
		if r.Method != http.MethodGet || r.URL.Path != "/sse" {
			t.Errorf("%s %q opened a stream", r.Method, r.URL.Path)
		}
		events := parse(t, text)
		if len(events) == 0 || events[0].Name != "endpoint" || strings.HasPrefix(events[0].Data, "//") || !strings.HasPrefix(events[0].Data, "/") {
			t.Errorf("the stream is %q", text)
		}
	case w.Code == http.StatusAccepted:
		if r.Method != http.MethodPost || r.URL.Path != "/sse/"+id+"/message" || text != "" {
			t.Errorf("%s %q was taken", r.Method, r.URL.Path)
		}
	case w.Code == http.StatusNoContent:
		if r.Method != http.MethodOptions {
			t.Errorf("%s got 204", r.Method)
		}
	case w.Code < 400 || w.Code >= 500 || !isRefusal(text):
		t.Errorf("%s %q: got %d %q", r.Method, r.URL.Path, w.Code, text)
	}
	for name, values := range w.Header() {
		for _, v := range values {
			if strings.ContainsAny(v, "\r\n") && name != "Access-Control-Allow-Origin" { // net/http replaces them
				t.Errorf("header %s is %q", name, v)
			}
		}
	}
}

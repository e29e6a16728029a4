package sse_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
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
	if r.c == nil {
		t.Fatalf("GET /sse: %d", r.StatusCode)
	}
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
		if got, want := s.next().Data, `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":12345678901234567890.10}}`; got != want {
			t.Errorf("got %.200s, want %.200s", got, want)
		}
	}
	// what comes on several lines leaves on one
	post(t, s.client, s.url, "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\n\"method\":\"echo\",\n\"params\":{\n\"a\":\n1}}")
	if got, want := s.next().Data, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKindsOfMessage(t *testing.T) {
	f := newFixture(t, config{})
	kinds := make(chan jsonrpc.Kind, 1)
	f.backend.receive = func(_ *connstate.Connection, m *jsonrpc.Message) { kinds <- m.Kind }
	srv := start(t, f)
	s := attach(t, f, srv.Client(), srv.URL)
	for body, want := range map[string]jsonrpc.Kind{
		`{"jsonrpc":"2.0","id":1,"method":"no/such/method"}`:                      jsonrpc.Request,
		`{"jsonrpc":"2.0","method":"notifications/x","params":[]}`:                jsonrpc.Notification,
		`{"jsonrpc":"2.0","id":"s1","result":{}}`:                                 jsonrpc.Response,
		`{"jsonrpc":"2.0","id":"s1","error":{"code":1,"message":"m"},"more":[1]}`: jsonrpc.Response,
	} {
		if res, text := post(t, s.client, s.url, body); res.StatusCode != http.StatusAccepted {
			t.Errorf("%s: got %d %s", body, res.StatusCode, text)
			continue
		}
		if got := <-kinds; got != want {
			t.Errorf("%s: got a %v", body, got)
		}
	}
}

func TestContentTypes(t *testing.T) {
	s := openSession(t, config{})
	for _, test := range []struct {
		contentType string
		want        int
	}{
		{"application/json", 202},
		{"application/json; charset=utf-8", 202},
		{"application/json;charset=UTF-8", 202},
		{`application/json; charset="utf-8"`, 202},
		{"Application/JSON", 202},
		{"application/vnd.mcp+json", 202},
		{"application/json; charset=utf-16", 415},
		{"application/json; charset=iso-8859-1", 415},
		{"application/json; charset=", 415},
		{"application/json; x", 415},
		{"text/plain", 415},
		{"text/json", 415},
		{"application/x-www-form-urlencoded", 415},
		{"multipart/form-data; boundary=x", 415},
		{"application/jsonx", 415},
		{"application/json, text/plain", 415},
		{"", 415},
		{"\x01", 415},
	} {
		if test.contentType == "\x01" { // a client refuses to send it
			continue
		}
		res, body := post(t, s.client, s.url, `{"jsonrpc":"2.0","method":"n"}`, "Content-Type", test.contentType)
		if res.StatusCode != test.want || test.want != 202 && !isRefusal(body) {
			t.Errorf("%q: got %d %s, want %d", test.contentType, res.StatusCode, body, test.want)
		}
	}
	if res, body := post(t, s.client, s.url, "x", "Content-Encoding", "gzip"); res.StatusCode != 415 || !isRefusal(body) {
		t.Errorf("gzip: got %d %s", res.StatusCode, body)
	}
	s.works(t)
	if n := s.count(t, "mcp_sse_posts_rejected_total", "reason", metrics.PostMediaType); n != 12 {
		t.Errorf("got %v rejections counted, want 12", n)
	}
}

func TestMethods(t *testing.T) {
	s := openSession(t, config{})
	for _, test := range []struct {
		method, url, allow string
		status             int
	}{
		{http.MethodPost, s.base + "/sse", "GET", 405}, // how newer clients look for Streamable HTTP
		{http.MethodPut, s.base + "/sse", "GET", 405},
		{http.MethodDelete, s.base + "/sse", "GET", 405},
		{http.MethodHead, s.base + "/sse", "GET", 405},
		{http.MethodOptions, s.base + "/sse", "GET", 405},
		{"PROPFIND", s.base + "/sse", "GET", 405},
		{http.MethodGet, s.url, "POST", 405},
		{http.MethodPut, s.url, "POST", 405},
		{http.MethodDelete, s.url, "POST", 405},
		{http.MethodHead, s.url, "POST", 405},
		{http.MethodOptions, s.url, "POST", 405},
		{http.MethodGet, s.base + "/", "", 404},
		{http.MethodGet, s.base + "/sse/", "", 404},
		{http.MethodGet, s.base + "/SSE", "", 404},
		{http.MethodGet, s.base + "/ssex", "", 404},
		{http.MethodPost, s.base + "/sse/" + s.c.ID(), "", 404},
		{http.MethodPost, s.url + "/", "", 404},
		{http.MethodPost, s.base + "//sse/" + s.c.ID() + "/message", "", 404},
	} {
		res, body := fetch(t, s.client, test.method, test.url)
		if res.StatusCode != test.status || res.Header.Get("Allow") != test.allow {
			t.Errorf("%s %s: got %d, Allow %q, want %d, %q", test.method, test.url, res.StatusCode, res.Header.Get("Allow"), test.status, test.allow)
		}
		if test.method != http.MethodHead && !isRefusal(body) {
			t.Errorf("%s %s: got the body %q", test.method, test.url, body)
		}
		if got := res.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %s: got the Content-Type %q", test.method, test.url, got)
		}
	}
	s.works(t)
}

func TestConnectionsThatAreNotOurs(t *testing.T) {
	s := openSession(t, config{})
	id := s.c.ID()
	for _, wrong := range []string{
		"x", "00000000-0000-4000-8000-000000000000", strings.ToUpper(id), id + "0", id[1:], " ", "%20" + id, id + "%00", "..", "%2e%2e",
		"auto-initialize-" + id, s.c.ShortID(), strings.Repeat("a", 5000), "%F0%9F%92%A9", "*", id + "%2Fmessage", "{id}",
	} {
		res, body := post(t, s.client, s.base+"/sse/"+strings.ReplaceAll(wrong, " ", "%20")+"/message", `{"jsonrpc":"2.0","id":1,"method":"echo"}`)
		if res.StatusCode != http.StatusNotFound || !isRefusal(body) {
			t.Errorf("%.60s: got %d %s", wrong, res.StatusCode, body)
		}
	}
	// the id of another connection is that connection's
	other := attach(t, s.fixture, s.client, s.base)
	other.works(t)
	s.works(t)
}

func TestPostAroundClose(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":1,"method":"echo"}`
	s := openSession(t, config{})
	s.works(t)
	s.c.Close(metrics.ClosedShutdown)
	if res, body := post(t, s.client, s.url, message); res.StatusCode != http.StatusNotFound || !isRefusal(body) {
		t.Errorf("after close: got %d %s", res.StatusCode, body)
	}

	s = openSession(t, config{})
	closing := make(chan struct{})
	go func() {
		defer close(closing)
		s.c.CloseGracefully(metrics.ClosedShutdown, time.Second)
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
	authenticate, err := sse.BearerTokens(map[string]string{"token-a": "alice", "token-b": "bob", "token-a2": "alice"})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{Authenticate: authenticate}}})
	srv := start(t, f)
	s := attach(t, f, srv.Client(), srv.URL, "Authorization", "Bearer token-a")
	if got := s.c.Client().Principal; got != "alice" {
		t.Errorf("got the principal %q", got)
	}
	for token, want := range map[string]int{"token-a": 202, "token-a2": 202, "token-b": 404, "": 401, "x": 401} {
		res, body := post(t, s.client, s.url, `{"jsonrpc":"2.0","method":"n"}`, "Authorization", "Bearer "+token)
		if res.StatusCode != want || want != 202 && !isRefusal(body) {
			t.Errorf("token %q: got %d %s, want %d", token, res.StatusCode, body, want)
		}
	}
	_, mine := post(t, s.client, s.url, `{"jsonrpc":"2.0","method":"n"}`, "Authorization", "Bearer token-b")
	_, none := post(t, s.client, s.base+"/sse/none/message", `{"jsonrpc":"2.0","method":"n"}`, "Authorization", "Bearer token-b")
	if mine != none {
		t.Errorf("the answers tell which ids exist: %s and %s", mine, none)
	}
}

// Of a GET's headers only those are kept that the operator has named.
func TestForwardHeadersAreKept(t *testing.T) {
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{ForwardHeaders: []string{"x-tenant", "X-Missing"}}}})
	srv := start(t, f)
	s := attach(t, f, srv.Client(), srv.URL, "X-Tenant", "a", "Authorization", "Bearer secret")
	if got := fmt.Sprint(s.c.Client().Header); got != "map[X-Tenant:[a]]" {
		t.Errorf("got %s, want the one named header", got)
	}
	if none := attach(t, f, srv.Client(), srv.URL, "Authorization", "Bearer secret"); none.c.Client().Header != nil {
		t.Errorf("got %v, want nothing", none.c.Client().Header)
	}
}

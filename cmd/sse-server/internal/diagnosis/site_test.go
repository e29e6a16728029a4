package diagnosis_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// port serves TCP connections until the test ends, and returns its address.
func port(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { // ends with the connection
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Wait()
	})
	return listener.Addr().String()
}

// unread is a connection of which some bytes have been looked at.
type unread struct {
	net.Conn
	io.Reader
}

func (u unread) Read(p []byte) (int, error) { return u.Reader.Read(p) }

// The wrong scheme is found, also where the port says nothing to it.
func TestWrongScheme(t *testing.T) {
	t.Parallel()
	certificates := httptest.NewTLSServer(http.NotFoundHandler())
	defer certificates.Close()
	// for the byte that TLS begins with, or any other, a port does what wrong says, and else serves.
	listening := func(forTLS bool, wrong func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) {
			in := bufio.NewReader(conn)
			head, err := in.Peek(1)
			switch isTLS := err == nil && head[0] == 22; {
			case isTLS != forTLS:
				wrong(unread{conn, in})
			case forTLS:
				_ = tls.Server(unread{conn, in}, certificates.TLS).HandshakeContext(t.Context())
			default:
				_, _ = http.ReadRequest(in)
				_, _ = io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			}
		}
	}
	closes := func(net.Conn) {}
	hangs := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	says := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, text)
		}
	}
	const nginx = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n<html><title>400 The plain HTTP request was sent to HTTPS port</title></html>"
	for name, test := range map[string]struct {
		scheme string
		port   func(net.Conn)
		want   string
	}{
		"TLS port that closes":     {"http", listening(true, closes), "HTTP: failed: the server speaks TLS there, and no plain HTTP -> use https://"},
		"TLS port that hangs":      {"http", listening(true, hangs), "HTTP: failed: the server speaks TLS there"},
		"TLS port that tells":      {"http", listening(true, says(nginx)), "HTTP: failed: the server speaks TLS there"},
		"TLS port with an alert":   {"http", listening(true, says("\x15\x03\x01\x00\x02\x02\x46")), "HTTP: failed: the server speaks TLS there"},
		"plain port that closes":   {"https", listening(false, closes), "TLS: failed: the server does not speak TLS there, but plain HTTP -> use http://"},
		"plain port that hangs":    {"https", listening(false, hangs), "TLS: failed: the server does not speak TLS there, but plain HTTP"},
		"port that closes":         {"http", closes, "HTTP: failed: the connection is closed without an answer -> check the port"},
		"port that closes, to TLS": {"https", closes, "TLS: failed: the connection is closed during the TLS handshake -> check the port"},
		"port that hangs, to TLS":  {"https", hangs, "TLS: failed: the server does not answer in the TLS handshake -> check the port"},
		"no HTTP":                  {"http", says("SSH-2.0-OpenSSH_9.2\r\n"), "HTTP: failed: what listens there does not answer HTTP -> check the port"},
	} {
		patience := time.Minute
		if strings.Contains(name, "hangs") {
			patience = 3 * time.Second
		}
		got, works := look(t, diagnosis.Options{URL: test.scheme + "://" + port(t, test.port) + "/mcp", Patience: patience})
		if works {
			t.Errorf("%s: a client can work there:\n%s", name, got)
		}
		wantLines(t, name+"\n"+got, test.want)
	}
}

// Host and Origin are steps of their own, with a request that has them.
func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	const page = "https://app.example.com"
	named := gateway.Options{AllowedHosts: []string{"gw.example.com"}}
	gw, forPage := serve(t, newGateway(t, named)), serve(t, newGateway(t, gateway.Options{AllowedOrigins: []string{page}}))
	local := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // refuses without a word
		if !strings.HasPrefix(r.Host, "localhost") {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	strict := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") == "" {
			http.Error(w, "an Origin is needed", http.StatusForbidden)
		}
	}))
	onlyPreflight := newGateway(t, gateway.Options{})
	for name, test := range map[string]struct {
		o    diagnosis.Options
		want []string
	}{
		"served":              {diagnosis.Options{URL: gw + "/mcp"}, []string{"HTTP: ok: HTTP/1.1 is spoken there", "Host: ok: requests for 127.0.0.1", "Origin: ok: requests without one", "authentication: ok: none is asked for"}},
		"wrong name":          {diagnosis.Options{URL: hostOf(t, gw, "evil.example.com") + "/mcp"}, []string{"Host: failed: HTTP 403: ", "-> allow the name: --allowed-hosts 127.0.0.1;"}},
		"refused silently":    {diagnosis.Options{URL: local + "/mcp"}, []string{"Host: failed: HTTP 403 for 127.0.0.1", ", and 200 for localhost", "-> allow the name"}},
		"page that is served": {diagnosis.Options{URL: forPage + "/mcp", Origin: page}, []string{"Origin: ok: a POST of a page of " + page, "CORS: ok"}},
		"page that is not":    {diagnosis.Options{URL: gw + "/mcp", Origin: page}, []string{"Origin: failed: HTTP 403: the Origin is not allowed", "-> allow the page: --allowed-origins " + page, "HTTP+SSE: a call: ok", "CORS: not tried: the Origin was refused\n"}},
		"page of nothing":     {diagnosis.Options{URL: forPage + "/nothing", Origin: page}, []string{"MCP: failed", "CORS: not tried: no call was answered\n"}},
		"no page":             {diagnosis.Options{URL: strict + "/mcp"}, []string{"Origin: failed: HTTP 403: an Origin is needed -> let requests pass that have no Origin"}},
		"preflight alone": {diagnosis.Options{URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Origin")
			if r.Method == http.MethodOptions {
				w.Header().Set("Access-Control-Allow-Origin", "*")
				w.Header().Set("Access-Control-Allow-Headers", "*")
				return
			}
			onlyPreflight.ServeHTTP(w, r)
		})) + "/mcp", Origin: page}, []string{"Origin: ok", "CORS: failed: the preflight is allowed, and the answer to a POST has no Access-Control-Allow-Origin for " + page}},
		"id not exposed": {diagnosis.Options{URL: serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Origin")
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Allow-Headers", "*")
			if r.Method != http.MethodOptions {
				onlyPreflight.ServeHTTP(w, r)
			}
		})) + "/mcp", Origin: page}, []string{"CORS: failed: the page cannot read Mcp-Session-Id", "-> have the server, or the proxy, send Access-Control-Expose-Headers: Mcp-Session-Id"}},
	} {
		got, works := look(t, test.o)
		if works == strings.Contains(strings.Join(test.want, ""), "failed") {
			t.Errorf("%s: a client can work there: %v", name, works)
		}
		wantLines(t, name+"\n"+got, test.want...)
	}
}

// A server that never answers a message without a session is asked for one.
func TestSilentOnOneMessage(t *testing.T) {
	t.Parallel()
	gw := newGateway(t, gateway.Options{})
	at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), "notifications/cancelled") {
			<-r.Context().Done()
			return
		}
		gw.ServeHTTP(w, r)
	}))
	got, works := look(t, diagnosis.Options{URL: at + "/mcp", Patience: 3 * time.Second})
	if !works || strings.Contains(got, "Host:") {
		t.Errorf("works: %v", works)
	}
	wantLines(t, got, "HTTP: not served: a message without a session is not answered", "Streamable HTTP: a call: ok", "HTTP+SSE: a call: ok")
}

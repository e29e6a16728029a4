package httpcheck_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestContentTypes(t *testing.T) {
	for contentType, want := range map[string]int{
		"application/json":                   200,
		"application/json;charset=UTF-8":     200,
		`application/json; charset="utf-8"`:  200,
		"Application/JSON":                   200,
		"application/vnd.mcp+json":           200,
		"application/json; charset=utf-16":   415,
		"application/json; charset=":         415,
		"application/json; x":                415,
		"text/plain":                         415,
		"text/json":                          415,
		"multipart/form-data; boundary=x":    415,
		"application/json, text/plain":       415,
		"":                                   415,
		"application/json; charset=\x01utf8": 415,
	} {
		w := ask(newTransport(t, httpcheck.Options{}), "", http.MethodPost, "/t", `{"jsonrpc":"2.0","method":"n"}`, "Content-Type", contentType)
		if w.Code != want || want == 415 && message(w.Body.String()) == "" {
			t.Errorf("%q: got %d %s, want %d", contentType, w.Code, w.Body, want)
		}
	}
	w := ask(newTransport(t, httpcheck.Options{}), "", http.MethodPost, "/t", "x", "Content-Type", "application/json", "Content-Encoding", "gzip")
	ssetest.Want(t, "gzip", w.Code, 415)
}

// jsonrpc decides what a message is; here each kind of refusal has its status and reason.
func TestBadMessages(t *testing.T) {
	for body, reason := range map[string]string{
		``:   metrics.PostInvalidJSON,
		`{`:  metrics.PostInvalidJSON,
		`{}`: metrics.PostInvalidRequest,
		`[{"jsonrpc":"2.0","id":1,"method":"a"}]`: metrics.PostInvalidRequest,
		`{"jsonrpc":"2.0","id":null,"result":{}}`: metrics.PostInvalidRequest,
	} {
		h := newTransport(t, httpcheck.Options{})
		w := ask(h, "", http.MethodPost, "/t", body, "Content-Type", "application/json")
		if w.Code != http.StatusBadRequest || message(w.Body.String()) == "" || h.count(t, http.MethodPost, reason) != 1 {
			t.Errorf("%s: got %d %s, want 400 counted under %s", body, w.Code, w.Body, reason)
		}
	}
}

// A body takes from the budget as it arrives: what its length announces costs nothing.
func TestBodiesAreHeldAsTheyArrive(t *testing.T) {
	const limit = 1 << 20
	for _, size := range []int{0, 1, 16 << 10, 16<<10 + 1, 64 << 10, 100_000, limit - 1, limit, limit + 1} {
		for _, announced := range []bool{true, false} {
			h := newTransport(t, httpcheck.Options{MaxMessageBytes: limit})
			text := strings.Repeat("x", size)
			r := httptest.NewRequest(http.MethodPost, "/t", nil)
			r.Header.Set("Content-Type", "application/json")
			counted := &counter{Reader: strings.NewReader(text)}
			r.Body, r.ContentLength = io.NopCloser(counted), -1
			if announced {
				r.ContentLength = int64(size)
			}
			held := 0
			body, why := h.ReadBody(httptest.NewRecorder(), r, func(n, before int) error {
				if before != held || n <= 0 || held+n > max(64<<10, 2*counted.n) {
					t.Errorf("%d bytes: asked for %d more than %d, while %d have come", size, n, before, counted.n)
				}
				held += n
				return nil
			})
			if size > limit {
				if why == nil || why.Status != http.StatusRequestEntityTooLarge || len(body.Bytes) > 0 || counted.n != size {
					t.Errorf("over the limit: got %+v after %d bytes", why, counted.n)
				}
				continue
			}
			if why != nil || string(body.Bytes) != text || body.Held != held || size <= 16<<10 && held > 0 || size > 16<<10 && held < size {
				t.Errorf("%d bytes: got %d, %d held, %+v", size, len(body.Bytes), body.Held, why)
			}
		}
	}
}

type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// A client that announces a body and does not send it, or sends it slowly, gets its
// answer, and loses its TCP connection, in bounded time.
func TestHalfRequestsAreBounded(t *testing.T) {
	const limit = 10 * time.Second
	for _, tc := range []struct {
		request string
		status  int
		at      time.Duration // when the answer is there
	}{
		{"POST /nowhere HTTP/1.1\r\nContent-Length: 9", 404, 0},
		{"DELETE /t HTTP/1.1\r\nContent-Length: 9", 405, 0},
		{"GET /t HTTP/1.1\r\nAuthorization: wrong\r\nContent-Length: 9", 401, 0},
		{"POST /t HTTP/1.1\r\nOrigin: http://evil.example\r\nContent-Length: 9", 403, 0},
		{"POST /t HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 9", 415, 0},
		{"POST /t HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100000000", 413, 0},
		{"POST /t HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9", 400, limit},
		{"POST /t HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked", 400, limit},
		{"GET /healthz HTTP/1.1\r\nContent-Length: 9", 400, 0},
		{"POST /healthz HTTP/1.1\r\nContent-Length: 9", 400, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newTransport(t, httpcheck.Options{Authenticate: func(r *http.Request) (string, error) {
				if r.Header.Get("Authorization") != "" {
					return "", errors.New("wrong")
				}
				return "", nil
			}})
			routes := http.NewServeMux()
			routes.Handle("/", h)
			routes.Handle("/healthz", h.Guard(http.NotFoundHandler()))
			p := pipetest.Serve(routes, nil, nil)
			defer p.Stop()
			conn := p.Dial()
			var wg sync.WaitGroup
			defer wg.Wait()
			defer conn.Close()
			sent := time.Now()
			fmt.Fprintf(conn, "%s\r\nHost: localhost\r\n\r\n", tc.request)
			if strings.HasSuffix(tc.request, "chunked") {
				wg.Go(func() { // a byte a second
					for err := error(nil); err == nil; time.Sleep(time.Second) {
						_, err = io.WriteString(conn, "1\r\n \r\n")
					}
				})
			}
			in := bufio.NewReader(conn)
			res, err := http.ReadResponse(in, nil)
			ssetest.Must(t, err)
			if _, err := io.ReadAll(res.Body); err != nil || res.StatusCode != tc.status || time.Since(sent) != tc.at {
				t.Errorf("%q: got %s after %v, %v; want %d after %v", tc.request, res.Status, time.Since(sent), err, tc.status, tc.at)
			}
			if _, err := io.WriteString(conn, "12345678"); err != nil && tc.at == 0 && tc.status != 413 {
				t.Errorf("%q: the TCP connection is closed while the client sends, which may cost it the answer: %v", tc.request, err)
			}
			if _, err := in.ReadByte(); err != io.EOF || time.Since(sent) > tc.at+2*time.Second {
				t.Errorf("%q: the TCP connection ends after %v: %v", tc.request, time.Since(sent), err)
			}
		})
	}
}

// A shorter ReadTimeout of the server ends a body; a longer one does not prolong it.
func TestReadTimeoutOfTheServer(t *testing.T) {
	for own, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second, time.Minute: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := pipetest.Serve(newTransport(t, httpcheck.Options{}), nil, func(s *http.Server) { s.ReadTimeout = own })
			defer p.Stop()
			conn := p.Dial()
			defer conn.Close()
			sent := time.Now()
			fmt.Fprint(conn, "POST /t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			ssetest.Must(t, err)
			if took := time.Since(sent); res.StatusCode != http.StatusBadRequest || took != want {
				t.Errorf("ReadTimeout %v: got %s after %v, want 400 after %v", own, res.Status, took, want)
			}
			_, _ = io.Copy(io.Discard, res.Body)
		})
	}
}

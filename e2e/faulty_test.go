package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// faulty is an HTTP proxy in front of a remote server. It may answer in the
// server's place.
type faulty struct {
	url string

	mu   sync.Mutex
	take func(w http.ResponseWriter, r *http.Request) bool // guarded by mu; nil: all goes through
	seen []http.Header                                     // guarded by mu; of all requests
}

// startFaulty puts a faulty proxy in front of the server.
func startFaulty(t *testing.T, target string) *faulty {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{}
	next := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: u.Scheme, Host: u.Host})
	next.FlushInterval = -1
	next.Transport = newHTTP(t).Transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.Header.Clone())
		taken := f.take != nil && f.take(w, r)
		f.mu.Unlock()
		if !taken {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	f.url = server.URL + u.Path
	return f
}

// answer sets who answers in the server's place; it reports whether it did.
func (f *faulty) answer(take func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.take = take
}

// headers returns those of all requests so far.
func (f *faulty) headers() []http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[:len(f.seen):len(f.seen)]
}

// peek reads the body of a request and puts it back.
func peek(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

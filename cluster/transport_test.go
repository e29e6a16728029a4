package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/cluster"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Whoever has not the key of the cluster has no request served.
func TestStrangersAreNotServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		one := joinAll(t, b, echo, "one")[0]
		otherKey, _ := cluster.TLS(bytes.Repeat([]byte("x"), 32), "mcp", "ABCDEFGH", one.ID())
		otherKey.InsecureSkipVerify = true
		otherName, _ := cluster.TLS(testKey, "other", "ABCDEFGH", one.ID())
		otherName.InsecureSkipVerify = true
		right, _ := cluster.TLS(testKey, "mcp", "ABCDEFGH", one.ID())
		old := right.Clone()
		old.MinVersion, old.MaxVersion = 0, tls.VersionTLS12
		ask := func(config *tls.Config) string {
			t.Helper()
			tcp, err := b.lan.dial("stranger")(t.Context(), "tcp", one.Address())
			ssetest.Must(t, err)
			defer tcp.Close()
			conn := tcp
			if config != nil {
				conn = tls.Client(tcp, config)
			}
			const post = "POST /x HTTP/1.1\r\nHost: h\r\nMcp-Forward: id=a&principal=ada\r\nContent-Length: 0\r\n\r\n"
			_, _ = io.WriteString(conn, post)
			answer := make([]byte, 12)
			n, _ := io.ReadFull(conn, answer)
			return string(answer[:n])
		}
		for name, config := range map[string]*tls.Config{
			"no certificate": {InsecureSkipVerify: true}, "another key": otherKey, "another cluster": otherName,
			"old TLS": old, "no TLS": nil,
		} {
			if got := ask(config); strings.Contains(got, " 202") || len(one.served) > 0 {
				t.Errorf("%s: got %q, served %q", name, got, one.served)
			}
		}
		if got := ask(right); got != "HTTP/1.1 202" {
			t.Errorf("a replica: got %q", got)
		}
		if !strings.Contains(one.logs.String(), "connection refused: another key") {
			t.Errorf("it has logged %s", one.logs)
		}
	})
}

// Whoever takes the address of a replica cannot answer for it, neither with a response nor by
// saying that it has not the connection.
func TestStrangersDoNotAnswer(t *testing.T) {
	for _, who := range []string{"another key", "another replica"} {
		bubble(t, func(t *testing.T) {
			b := startBroker(t)
			all := joinAll(t, b, echo, "one", "two")
			_, config := cluster.TLS(testKey, "mcp", "ABCDEFGH", "")
			if who == "another key" {
				_, config = cluster.TLS(bytes.Repeat([]byte("x"), 32), "mcp", all[1].ID(), "")
			}
			b.lan.kill("two")
			tcp, err := b.lan.listen("stranger")("tcp", all[1].Address())
			ssetest.Must(t, err)
			var asked bool
			stranger := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked = true
				w.Header().Set("Mcp-Forward-Refused", "gone")
				w.WriteHeader(http.StatusMisdirectedRequest)
			})}
			go func() { _ = stranger.Serve(tls.NewListener(tcp, config)) }()
			defer stranger.Close()
			w, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", "{}", true)
			if asked || how != "" || !strings.Contains(w.Body.String(), `"reason":"cluster_unavailable","retryable":true`) {
				t.Errorf("%s: %q, got %d %s", who, how, w.Code, w.Body)
			}
		})
	}
}

// A replica that NATS does not hear, but others reach, goes on with its requests, and gets more.
func TestReplicaIsCutFromNATSAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, stream, "one", "two")
		b.cutFromNATS("two", true)
		for range 2 {
			w, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", "{}", true)
			if how != "" || w.Body.String() != events() {
				t.Errorf("%q, got %d %s", how, w.Code, w.Body)
			}
		}
		if r := all[0].Replicas(); len(r) != 2 || !r[1].Silent {
			t.Errorf("replicas: %+v", r)
		}
		b.cutFromNATS("two", false)
		time.Sleep(10 * time.Second)
	})
}

// No request is lost to a connection that ends because its replica leaves, and none runs twice.
func TestNoRequestIsLostAtClose(t *testing.T) {
	for _, long := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			served := &counter{count: make(map[string]int)}
			h := served.serve // up to 0.6 s, so some requests are served while the replica leaves
			if !long {
				h = func(_ http.ResponseWriter, r *http.Request) { served.counted(r) }
			}
			all := joinAll(t, startBroker(t), h, "one", "two", "three")
			id := all[1].ID() + ".random.mac"
			var clients sync.WaitGroup
			elsewhere := false // guarded by served.mu
			for client := 1; client <= 20; client++ {
				clients.Go(func() {
					for i := 0; ; i++ {
						name := fmt.Sprintf("%d-%d", client, i)
						time.Sleep(time.Duration(client) * 3 * time.Millisecond)
						w, how := forward(t.Context(), all[0], id, name+" ", false)
						served.mu.Lock()
						over, times := all[1].gone(), served.count[name]
						elsewhere = elsewhere || how == "not forwarded"
						served.mu.Unlock()
						wrong := how == "not forwarded" && times != 0
						if how == "" && (w.Code != http.StatusOK || times != 1) || wrong {
							t.Errorf("request %s: %q, got %d %s; served %d times", name, how, w.Code, w.Body, times)
							return
						}
						if over && how == "not forwarded" {
							return
						}
					}
				})
			}
			time.Sleep(2 * time.Second)
			all[1].detach()
			all[1].set(func() { all[1].draining = true })
			began := time.Now()
			all[1].Close()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the others let it go after %v", took)
			}
			clients.Wait()
			if !elsewhere {
				t.Error("no request went elsewhere")
			}
		})
	}
}

func (r *replica) gone() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.draining }

// A replica whose address the others do not reach gets no request. They say so, and the request may
// be repeated.
func TestAddressIsNotReached(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		for what, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
			"refused": func(context.Context, string, string) (net.Conn, error) { return nil, refused },
			"nothing": func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		} {
			two, err := join(t, b, "two")
			ssetest.Must(t, err)
			two.serve(echo)
			one, err := join(t, b, "one", func(o *cluster.Options) { o.SetNetwork(b.lan.listen("one"), dial) })
			ssetest.Must(t, err)
			one.serve(echo)
			time.Sleep(3 * time.Second)
			began := time.Now()
			w, how := forward(t.Context(), one, two.ID()+".random.mac", "{}", true)
			const reason = `"reason":"cluster_unavailable","retryable":true`
			if how != "" || w.Code != 503 || !strings.Contains(w.Body.String(), reason) ||
				w.Header().Get("Retry-After") != "1" || time.Since(began) > 11*time.Second {
				t.Errorf("%s: %q, got %d %s after %v", what, how, w.Code, w.Body, time.Since(began))
			}
			if len(two.served) > 0 || !strings.Contains(one.logs.String(), "replica cannot be reached") {
				t.Errorf("%s: served %q, logged %s", what, two.served, one.logs)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began = time.Now()
			w, how = forward(ctx, one, two.ID()+".random.mac", "{}", true)
			if how != "" || w.Body.Len() > 0 || time.Since(began) > time.Second {
				t.Errorf("%s: the client has left: %q, got %s after %v", what, how, w.Body, time.Since(began))
			}
			cancel()
			one.Close()
			two.Close()
		}
	})
}

// A stream's head and each of its events pass at once.
func TestStreamIsFlushed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		next := make(chan string)
		all := joinAll(t, startBroker(t), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			for event := range next {
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
			}
		}, "one", "two")
		q, f := request(t.Context(), all[1].ID()+".random.mac", "{}")
		w := &flushes{ResponseRecorder: httptest.NewRecorder()}
		over := make(chan bool)
		go func() { defer close(over); all[0].Forward(w, q, f) }()
		time.Sleep(10 * time.Millisecond)
		if got := w.seen(); got != "200 " {
			t.Errorf("without an event, the client has %q", got)
		}
		for i := range 3 {
			next <- fmt.Sprint(i)
			synctest.Wait()
			if got := w.seen(); got != "200 012"[:5+i] {
				t.Errorf("after event %d, the client has %q", i, got)
			}
		}
		close(next)
		<-over
	})
}

// flushes knows what was flushed.
type flushes struct {
	*httptest.ResponseRecorder
	mu      sync.Mutex
	flushed string
}

func (w *flushes) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushed = fmt.Sprint(w.Code, " ", w.Body)
	return nil
}

func (w *flushes) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushed
}

// A client cannot have a request repeated by its headers, nor say for whom it is.
func TestHeadersOfTheClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var got http.Header
		all := joinAll(t, startBroker(t), func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			got = r.Header.Clone()
			if r.TLS != nil || r.RemoteAddr != "192.0.2.7:0" {
				t.Errorf("TLS %v, from %s", r.TLS, r.RemoteAddr)
			}
			panic(http.ErrAbortHandler)
		}, "one", "two")
		for range 2 { // the second time on a connection that may be there
			q, f := request(t.Context(), all[1].ID()+".random.mac", "{}")
			for name, value := range map[string]string{
				"Idempotency-Key": "1", "Mcp-Forward": "principal=eve", "X-Forwarded-For": "203.0.113.9", "Forwarded": "for=x",
				"Connection": "Upgrade, X-Tenant, Authorization, Mcp-Session-Id", "Upgrade": "websocket\x80", "Expect": "100-continue",
				"X-Tenant": "of middleware", "Authorization": "Bearer t", "Mcp-Session-Id": "s",
			} {
				q.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			if !all[0].Forward(w, q, f) || w.Code != 503 {
				t.Errorf("got %d", w.Code)
			}
		}
		ssetest.Want(t, "how often two requests were served", len(all[1].served), 2)
		ssetest.Want(t, "X-Forwarded-For", got.Get("X-Forwarded-For"), "203.0.113.9")
		ssetest.Want(t, "Forwarded", got.Get("Forwarded"), "for=x")
		ssetest.Want(t, "what Connection lists", got.Get("X-Tenant")+got.Get("Authorization")+got.Get("Mcp-Session-Id"), "of middlewareBearer ts")
		ssetest.Want(t, "other headers", got.Get("Mcp-Forward")+got.Get("Upgrade")+got.Get("Expect"), "")
	})
}

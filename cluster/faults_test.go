package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// counter counts how often each request is served: the first word of its body names it.
type counter struct {
	mu    sync.Mutex
	count map[string]int
}

// counted counts a request, and returns its body and name.
func (c *counter) counted(r *http.Request) (body []byte, name string) {
	body, _ = io.ReadAll(r.Body)
	name, _, _ = strings.Cut(string(body), " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[name]++
	return body, name
}

func (c *counter) serve(w http.ResponseWriter, r *http.Request) {
	body, name := c.counted(r)
	time.Sleep(time.Duration(len(name)) * 100 * time.Millisecond)
	for part := range slices.Chunk(body, 10_000) {
		_, _ = w.Write(part)
		if len(body)%2 == 0 {
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// Messages over NATS are lost, doubled and changed in order. Each request is served once and has
// its whole response.
func TestFaults(t *testing.T) {
	for seed := range uint64(5) {
		bubble(t, func(t *testing.T) {
			b := startBroker(t)
			served := &counter{count: make(map[string]int)}
			all := joinAll(t, b, served.serve, "one", "two", "three")
			r := rand.New(rand.NewPCG(seed, 1))
			held := make(map[string][]byte)
			b.lose(func(from string, command []byte) []byte {
				before := held[from]
				held[from] = nil
				switch n := r.IntN(40); {
				case n < 1:
					return before
				case n < 5:
					held[from] = command // after the next one
					return before
				case n < 9:
					return append(append(command, command...), before...)
				}
				return append(command, before...)
			})
			var wg sync.WaitGroup
			for i := range 30 {
				body := fmt.Sprintf("%d-%d ", seed, i) + strings.Repeat("x", []int{0, 1, 9_000, 70_001, 300_000}[i%5]+i%7)
				wg.Go(func() {
					q, f := request(t.Context(), all[1+i%2].ID()+".random.mac", body)
					w := httptest.NewRecorder()
					if !all[0].Forward(w, q, f) || w.Code != http.StatusOK || w.Body.String() != body {
						t.Errorf("seed %d: %d of %d bytes: got %d, %d bytes %.100s", seed, i, len(body), w.Code, w.Body.Len(), w.Body)
					}
				})
			}
			wg.Wait()
			for name, n := range served.count {
				ssetest.Want(t, fmt.Sprintf("seed %d: how often request %s was served", seed, name), n, 1)
			}
			b.lose(nil)
		})
	}
}

// stream writes an event each 100 ms, a hundred times, until the client leaves.
func stream(w http.ResponseWriter, r *http.Request) {
	for i := range 100 {
		fmt.Fprintf(w, "%d\n", i)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}

func events() string {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// A restart of NATS in the middle of a stream loses nothing. Meanwhile, requests for other
// replicas are refused at once.
func TestRestartOfNATS(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, stream, "one", "two")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				q, f := request(t.Context(), all[1].ID()+".random.mac", "")
				w := httptest.NewRecorder()
				if !all[0].Forward(w, q, f) || w.Body.String() != events() {
					t.Errorf("got %d %q", w.Code, w.Body)
				}
			})
		}
		time.Sleep(3050 * time.Millisecond)
		b.stop()
		time.Sleep(2 * time.Second)
		q, f := request(t.Context(), all[1].ID()+".random.mac", `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		w := httptest.NewRecorder()
		began := time.Now()
		if !all[0].Forward(w, q, f) || w.Code != 503 || !strings.Contains(w.Body.String(), `"id":7`) ||
			!strings.Contains(w.Body.String(), `"reason":"cluster_unavailable","retryable":true`) || w.Header().Get("Retry-After") != "1" || time.Since(began) > 0 {
			t.Errorf("without NATS: got %d %s after %v", w.Code, w.Body, time.Since(began))
		}
		b.start()
		wg.Wait()
	})
}

// forward returns the response, and how it ended: "", "not forwarded" or "cut".
func forward(ctx context.Context, entry *replica, id, body string, resumes bool) (w *httptest.ResponseRecorder, how string) {
	q, f := request(ctx, id, body)
	f.Resumes = resumes
	w = httptest.NewRecorder()
	defer func() {
		if recover() == http.ErrAbortHandler {
			how = "cut"
		}
	}()
	if !entry.Forward(w, q, f) {
		return w, "not forwarded"
	}
	return w, ""
}

func TestOwnerLost(t *testing.T) {
	for _, killed := range []bool{true, false} { // or only cut from NATS
		bubble(t, func(t *testing.T) {
			b := startBroker(t)
			canceled := make(chan struct{})
			all := joinAll(t, b, func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength > 2 {
					stream(w, r)
					return
				}
				_, _ = io.ReadAll(r.Body) // net/http notices the end of a connection after that
				<-r.Context().Done()
				canceled <- struct{}{}
			}, "one", "two", "three")
			id := all[1].ID() + ".random.mac"
			var wg sync.WaitGroup
			began := time.Now()
			wg.Go(func() {
				w, how := forward(t.Context(), all[0], id, "{}", false)
				if how != "" || w.Code != 503 || !strings.Contains(w.Body.String(), `"reason":"replica_unreachable","retryable":false`) || w.Header().Get("Retry-After") != "" {
					t.Errorf("no response had begun: got %q, %d %s", how, w.Code, w.Body)
				}
			})
			wg.Go(func() {
				w, how := forward(t.Context(), all[0], id, "stream", false)
				if how != "cut" || !strings.HasPrefix(w.Body.String(), "0\n1\n2\n") {
					t.Errorf("a response had begun: got %q, %d %s", how, w.Code, w.Body)
				}
			})
			time.Sleep(time.Second)
			if killed {
				b.kill("two")
			} else {
				b.cut("two", true)
			}
			wg.Wait()
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("the loss was noticed after %v", took)
			}
			w, how := forward(t.Context(), all[0], id, "{}", false)
			if how != "not forwarded" && (killed || w.Code != 503 || !strings.Contains(w.Body.String(), "cluster_unavailable")) {
				t.Errorf("killed: %v: a later request: %q, got %d %s", killed, how, w.Code, w.Body)
			}
			if r := all[0].Replicas(); len(r) != 3 || !r[2].Silent || r[1].Silent {
				t.Errorf("replicas: %+v", r)
			}
			if killed {
				<-canceled
				return
			}
			time.Sleep(5 * time.Second)
			w, how = forward(t.Context(), all[1], all[0].ID()+".random.mac", "{}", false)
			if how != "" || !strings.Contains(w.Body.String(), "cluster_unavailable") {
				t.Errorf("at the one that is cut: %q, got %d %s", how, w.Code, w.Body)
			}
			b.cut("two", false)
			time.Sleep(10 * time.Second)
			if r := all[1].Replicas(); len(r) != 3 || r[1].Silent || r[2].Silent {
				t.Errorf("replicas: %+v", r)
			}
			if w, how := forward(t.Context(), all[0], id, "stream", false); how != "" || w.Body.String() != events() {
				t.Errorf("after its return: %q, got %d %s", how, w.Code, w.Body)
			}
			<-canceled
		})
	}
}

// A replica that is killed is gone after a while at the latest, and then at once.
func TestOwnerGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two", "three")
		id := all[1].ID() + ".random.mac"
		b.kill("two")
		synctest.Wait() // else a frame may be on its way to it
		for i, longest := range []time.Duration{7 * time.Second, 0, 0} {
			began := time.Now()
			_, how := forward(t.Context(), all[0], id, "{}", false)
			if how != "not forwarded" || time.Since(began) > longest {
				t.Errorf("request %d: %q after %v", i, how, time.Since(began))
			}
		}
		for range 10 {
			one, how := forward(t.Context(), all[0], id, "{}", true)
			three, how3 := forward(t.Context(), all[2], id, "{}", true)
			if (one.Code == 202) == (three.Code == 202) {
				t.Errorf("who goes on: %q %d, %q %d", how, one.Code, how3, three.Code)
			}
		}
		began := time.Now()
		if _, how := forward(t.Context(), all[0], "ABCDEFGH.random.mac", "{}", false); how != "not forwarded" || time.Since(began) > 0 {
			t.Errorf("an unknown replica: %q after %v", how, time.Since(began))
		}
		if _, how := forward(t.Context(), all[0], all[0].ID()+".random.mac", "{}", true); how != "not forwarded" {
			t.Errorf("an id of its own: %q", how)
		}
	})
}

// A listener to all that the replicas say, such as a monitor or a JetStream stream, is no
// replica: a session of a lost replica goes on all the same.
func TestOwnerGoneWhileOthersListen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two")
		monitor, err := nats.Connect("", nats.InProcessServer(line{b, "monitor"}))
		if err != nil {
			t.Fatal(err)
		}
		defer monitor.Close()
		if _, err := monitor.Subscribe(">", func(*nats.Msg) {}); err != nil {
			t.Fatal(err)
		}
		id := all[1].ID() + ".random.mac"
		b.kill("two")
		time.Sleep(30 * time.Second) // gone by its heartbeats
		began := time.Now()
		if w, how := forward(t.Context(), all[0], id, "{}", true); how != "not forwarded" || time.Since(began) > 8*time.Second {
			t.Errorf("%q %s after %v", how, w.Body, time.Since(began))
		}
	})
}

// Requests that are sent in the moment in which a replica is found to be lost, which it has not
// received, are not lost with it.
func TestOwnerFoundGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two")
		b.kill("two")
		var requests sync.WaitGroup
		for i := range 200 {
			requests.Go(func() {
				time.Sleep(500*time.Millisecond + time.Duration(i%5+1)*time.Second) // replicas look at full seconds
				if w, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", "{}", false); how != "not forwarded" {
					t.Errorf("%q %s", how, w.Body)
				}
			})
		}
		requests.Wait()
	})
}

func TestClientGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		ended := make(chan time.Time, 1)
		all := joinAll(t, b, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body) // net/http notices the end of a connection after that
			<-r.Context().Done()
			ended <- time.Now()
		}, "one", "two")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w, how := forward(ctx, all[0], all[1].ID()+".random.mac", "{}", false)
		if at := time.Now(); how != "" || w.Body.Len() > 0 || !(<-ended).Equal(at) {
			t.Errorf("%q, got %s", how, w.Body)
		}
	})
}

// Whoever records what goes over NATS, and sends it again, has no request served again and
// brings no replica back.
func TestReplay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		served := &counter{count: make(map[string]int)}
		all := joinAll(t, b, served.serve, "one", "two")
		thief, err := nats.Connect("", nats.InProcessServer(line{b, "thief"}))
		ssetest.Must(t, err)
		defer thief.Close()
		var mu sync.Mutex
		var stolen []*nats.Msg
		sub, err := thief.Subscribe("mcp.>", func(m *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			stolen = append(stolen, m)
		})
		ssetest.Must(t, err)
		synctest.Wait()
		for i := range 20 {
			if w, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", fmt.Sprint(i, " "), false); how != "" || w.Code != 200 {
				t.Errorf("%q, got %d", how, w.Code)
			}
		}
		_ = sub.Unsubscribe()
		synctest.Wait()
		for range 3 {
			for _, m := range stolen {
				_ = thief.PublishMsg(m)
				m.Data = append([]byte(nil), m.Data...)
				if len(m.Data) > 20 {
					m.Data[20] ^= 1 // and forged
					_ = thief.PublishMsg(m)
					m.Data[20] ^= 1
				}
			}
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		for name, n := range served.count {
			ssetest.Want(t, "how often request "+name+" was served", n, 1)
		}
		if len(served.count) != 20 || len(stolen) < 4 || !strings.Contains(all[0].logs.String(), "another key") {
			t.Errorf("%d requests, %d messages, %s", len(served.count), len(stolen), all[0].logs)
		}
		if w, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", "last ", false); how != "" || w.Code != 200 {
			t.Errorf("%q, got %d", how, w.Code)
		}
	})
}

// A message may be larger than NATS takes, both ways.
func TestMaxPayload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two")
		body := strings.Repeat("x", 4<<20)
		if w, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", body, false); how != "" || w.Code != 202 || w.Body.String() != body {
			t.Errorf("%q, got %d, %d bytes", how, w.Code, w.Body.Len())
		}
	})
}

// slowWriter is a client that reads only when it is let.
type slowWriter struct {
	*httptest.ResponseRecorder
	let chan struct{}
}

func (w slowWriter) Write(p []byte) (int, error) {
	if len(p) > 0 { // else it only wants the head
		<-w.let
	}
	return w.ResponseRecorder.Write(p)
}

// A client that does not read makes the writer at the owner wait, until its deadline.
func TestSlowClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		const part = 100_000
		result, returns := make(chan error, 1), make(chan struct{})
		var written atomic.Int64
		all := joinAll(t, b, func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			var err error
			for err == nil && written.Load() < 1000*part {
				_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
				if _, err = w.Write(make([]byte, part)); err == nil {
					written.Add(part)
				}
			}
			result <- err
			<-returns
		}, "one", "two")
		q, f := request(t.Context(), all[1].ID()+".random.mac", "")
		w := slowWriter{httptest.NewRecorder(), make(chan struct{})}
		done := make(chan bool)
		go func() { defer func() { done <- recover() == http.ErrAbortHandler }(); all[0].Forward(w, q, f) }()
		for range 10 { // it reads a little all the time, which is enough
			time.Sleep(9 * time.Second)
			for range 8 {
				w.let <- struct{}{}
			}
		}
		if len(result) > 0 {
			t.Errorf("the owner gave up a client that reads: %v", <-result)
		}
		began := time.Now()
		longest := 16 * time.Second // in the last 5 of which TLS tries to say that it is the end
		if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > longest {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if n := written.Load(); n > 40*int64(maxPayload)+60*64<<10 {
			t.Errorf("%d bytes wait for the client", n)
		}
		close(w.let) // there is room again: the rest must not follow what is missing
		synctest.Wait()
		close(returns)
		if !<-done {
			t.Error("the client gets no sign that its response is cut")
		}
	})
}

func TestHandlerPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, func(w http.ResponseWriter, r *http.Request) {
			if r.ContentLength > 2 {
				_, _ = w.Write([]byte("begun"))
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		}, "one", "two")
		id := all[1].ID() + ".random.mac"
		if w, how := forward(t.Context(), all[0], id, "{}", false); how != "" || w.Code != 503 {
			t.Errorf("before the response: %q, got %d", how, w.Code)
		}
		if w, how := forward(t.Context(), all[0], id, "begun", false); how != "cut" || w.Body.String() != "begun" {
			t.Errorf("in the response: %q, got %s", how, w.Body)
		}
	})
}

// Requests in flight end when their replica is closed, and nothing is left.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, stream, "one", "two", "three")
		ends := make(chan string, 2)
		for i := range 2 {
			go func() {
				_, how := forward(t.Context(), all[i], all[2-2*i].ID()+".random.mac", "", false)
				ends <- how
			}()
		}
		time.Sleep(time.Second)
		all[0].Close() // an entry, and an owner
		if a, b := <-ends, <-ends; a != "cut" || b != "cut" {
			t.Errorf("%q, %q", a, b)
		}
		synctest.Wait()
		if r := all[1].Replicas(); len(r) != 2 {
			t.Errorf("replicas: %+v", r)
		}
		if _, how := forward(t.Context(), all[0], all[1].ID()+".random.mac", "", false); how != "" {
			t.Errorf("of a closed one: %q", how)
		}
	})
}

// A request that nobody has begun to serve when its replica is closed is for another one.
func TestNotBegunAtClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		over := make(chan struct{})
		all := joinAll(t, startBroker(t), func(http.ResponseWriter, *http.Request) { <-over }, "one", "two")
		id := all[1].ID() + ".random.mac"
		go forward(t.Context(), all[0], id, "{}", false)
		synctest.Wait()
		all[1].detach()
		go all[1].Close()
		synctest.Wait() // for the handler
		if w, how := forward(t.Context(), all[0], id, "{}", false); how != "not forwarded" {
			t.Errorf("got %q, %d %s", how, w.Code, w.Body)
		}
		close(over)
	})
}

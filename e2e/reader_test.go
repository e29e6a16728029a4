package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/r3labs/sse/v2"
)

// reader is a client of the auto-initialize design: the r3labs client listens to
// mcp-response events alone, and messages go out by plain POST.
type reader struct {
	t        *testing.T
	http     *http.Client
	endpoint string
	// messages holds every mcp-response; its room is more than any test sends.
	messages chan response
	early    []response // taken from messages by an await that wanted another
}

// noRetry makes the r3labs client end with its stream.
type noRetry struct{}

func (noRetry) NextBackOff() time.Duration { return -1 }
func (noRetry) Reset()                     {}

func openReader(t *testing.T, target string) *reader {
	t.Helper()
	r := &reader{t: t, http: newHTTP(t), messages: make(chan response, 1024)}
	ctx, cancel := context.WithCancel(context.Background())
	endpoint := make(chan string, 1)
	c := sse.NewClient(target, sse.ClientMaxBufferSize(16<<20))
	c.Connection, c.ReconnectStrategy = r.http, noRetry{}
	var wg sync.WaitGroup
	wg.Go(func() { // ends with ctx
		_ = c.SubscribeRawWithContext(ctx, func(e *sse.Event) {
			switch string(e.Event) {
			case "endpoint":
				endpoint <- string(e.Data)
			case "mcp-response":
				var m response
				if err := json.Unmarshal(e.Data, &m); err != nil {
					t.Errorf("mcp-response %q: %v", e.Data, err)
				}
				r.messages <- m
			}
		})
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	select {
	case reference := <-endpoint:
		r.endpoint = resolve(t, target, reference)
	case <-time.After(patience):
		t.Fatal("the r3labs client saw no endpoint event")
	}
	return r
}

func isAutoInitialize(m response) bool {
	return strings.HasPrefix(string(m.ID), `"auto-initialize-`)
}

// await returns the first mcp-response that matches.
func (r *reader) await(what string, match func(response) bool) response {
	r.t.Helper()
	for i, m := range r.early {
		if match(m) {
			r.early = append(r.early[:i], r.early[i+1:]...)
			return m
		}
	}
	deadline := time.After(patience)
	for {
		select {
		case m := <-r.messages:
			if match(m) {
				return m
			}
			r.early = append(r.early, m)
		case <-deadline:
			r.t.Fatalf("no mcp-response with %s; other ones: %+v", what, r.early)
		}
	}
}

// post posts a message and asserts 202.
func (r *reader) post(message string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.endpoint, strings.NewReader(message))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatalf("POST %s: %v", message, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		r.t.Fatalf("POST %s = %s, want 202", message, resp.Status)
	}
}

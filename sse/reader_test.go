package sse_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	r3 "github.com/r3labs/sse/v2"
)

// never is a strategy that does not reconnect.
type never struct{}

func (never) NextBackOff() time.Duration { return -1 }
func (never) Reset()                     {}

// An independent reader: what it parses is what we meant.
func TestIndependentReader(t *testing.T) {
	f := newFixture(t, config{})
	srv := start(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	client := r3.NewClient(srv.URL + "/sse?event=mcp-response")
	client.Connection = srv.Client()
	client.ReconnectStrategy = never{}
	events := make(chan *r3.Event, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = client.SubscribeRawWithContext(ctx, func(e *r3.Event) { events <- e })
	}()
	next := func(name string) string {
		t.Helper()
		select {
		case e := <-events:
			if string(e.Event) != name || len(e.ID) == 0 {
				t.Fatalf("got the event %q with id %q, want %s", e.Event, e.ID, name)
			}
			return string(e.Data)
		case <-time.After(time.Minute):
			t.Fatal("no event came")
		}
		return ""
	}
	endpoint := next("endpoint")
	if !json.Valid([]byte(next("connection"))) {
		t.Error("the connection event is no JSON")
	}
	post(t, srv.Client(), srv.URL+endpoint, `{"jsonrpc":"2.0","id":"ü","method":"echo","params":{"text":"a\nb\u2028 \ud83d\ude00"}}`)
	if got, want := next("mcp-response"), `{"jsonrpc":"2.0","id":"ü","result":{"text":"a\nb\u2028 \ud83d\ude00"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	cancel()
	<-done
	<-f.backend.closed
}

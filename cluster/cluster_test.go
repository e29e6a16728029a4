package cluster_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestForward(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := startBroker(t)
		all := joinAll(t, b, echo, "one", "two")
		r, f := request(context.Background(), all[1].ID()+".random.mac", "hello")
		r.URL.RawQuery += "\r\nX:1" // as no client can, but middleware
		w := httptest.NewRecorder()
		if !all[0].Forward(w, r, f) {
			t.Fatal("not forwarded")
		}
		want := "ada 192.0.2.7:0 host.example /s/message?x=%41X:1 a\x80b"
		if w.Code != http.StatusAccepted || w.Body.String() != "hello" || w.Header().Get("X-Seen") != want {
			t.Errorf("got %d %q %q", w.Code, w.Body, w.Header())
		}
		if got := all[0].Replicas(); len(got) != 2 || got[0].Name != "one" || got[1].Name != "two" || got[1].Silent {
			t.Errorf("replicas: %+v", got)
		}
	})
}

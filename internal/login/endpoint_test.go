package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A token endpoint that hangs costs a refresh its time and nothing else: the login is what it was.
func TestTokenEndpointThatHangs(t *testing.T) {
	w := newWorld(t, nil)
	l := w.mustLogIn(t, w.options(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.token = func(_ http.ResponseWriter, r *http.Request) bool {
		_ = r.FormValue("grant_type") // it reads all, so that the end of the client ends it
		cancel()                      // the time of the refresh is over
		<-r.Context().Done()
		return true
	}
	fresh := *l
	err := fresh.refresh(ctx, newGuard(nil, l.ServerAt))
	ssetest.WantText(t, "error", err, "the token endpoint cannot be asked", "canceled")
	ssetest.Want(t, "it has ended the login", errors.Is(err, errEnded), false)
	w.wantNoSecret(t, "the error", err.Error())
	ssetest.Want(t, "the login", fmt.Sprint(fresh), fmt.Sprint(*l))
}

// Of a token endpoint that answers a request twice on one connection, the first answer counts, and the second is none to
// the next request.
func TestTokenEndpointThatAnswersTwice(t *testing.T) {
	w := newWorld(t, nil)
	first := make(chan string, 8) // the token of each first answer
	w.token = func(rw http.ResponseWriter, r *http.Request) bool {
		_ = r.FormValue("grant_type") // what is not read would reset the connection
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		defer conn.Close()
		var answers string
		for i := range 2 {
			w.mu.Lock()
			token := w.secret("access")
			w.mu.Unlock()
			if i == 0 {
				first <- token
			}
			body := fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":3600,"refresh_token":"r"}`, token)
			answers += fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
		_, _ = io.WriteString(conn, answers)
		return true
	}
	l := w.mustLogIn(t, w.options(t))
	ssetest.Want(t, "the token of the login is the first", l.Access == <-first, true)
	g := newGuard(nil, netip.MustParseAddr("127.0.0.1"))
	for range 3 {
		ssetest.Must(t, l.refresh(t.Context(), g))
		ssetest.Want(t, "the token of a refresh is its first", l.Access == <-first, true)
	}
}

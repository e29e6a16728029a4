package background

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The newest window that can open a browser opens it, for a login on this machine alone, until it leaves.
func TestWindowsOpenTheBrowser(t *testing.T) {
	browsers := NewBrowsers()
	h := ForWindows(func() map[string]string { return nil }, browsers, http.NotFoundHandler())
	server := httptest.NewServer(h)
	defer server.Close()
	defer browsers.Close()
	at, err := url.Parse(server.URL)
	ssetest.Must(t, err)
	opened := make(chan string, 8)
	window := func(name string) (leave func()) {
		s := &Shared{at: at, client: server.Client(), log: slog.New(slog.DiscardHandler)}
		s.OpenBrowser = func(address string) error { opened <- name + " " + address; return nil }
		answer, err := s.client.Get(server.URL + greetingPath)
		ssetest.Must(t, err)
		defer answer.Body.Close()
		var who greeting
		ssetest.Must(t, json.NewDecoder(answer.Body).Decode(&who))
		leave, err = s.lend(t.Context(), &who)
		ssetest.Must(t, err)
		return leave
	}
	awaitWindows := func(want int) { // until the handlers of the others have ended
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for there := -1; there != want; <-tick.C {
			browsers.mu.Lock()
			there = len(browsers.windows)
			browsers.mu.Unlock()
		}
	}
	isThere := func() bool { _, is := browsers.Newest(); return is }
	open := func(address string) string {
		ssetest.Must(t, browsers.Open(address))
		return <-opened
	}
	const address = "http://127.0.0.1:1/start/x"
	ssetest.Want(t, "a window is there", isThere(), false)
	ssetest.Want(t, "the error without one", errors.Is(browsers.Open(address), errNoBrowser), true)
	leaveOne := window("one")
	ssetest.Want(t, "a window is there", isThere(), true)
	ssetest.Want(t, "opened", open(address), "one "+address)
	leaveTwo := window("two")
	ssetest.Want(t, "opened", open(address), "two "+address)
	for _, odd := range []string{"https://issuer.example/", "file:///etc/passwd", "http://127.0.0.1.evil.example/", ""} {
		ssetest.Must(t, browsers.Open(odd))
		ssetest.Want(t, "opened after "+odd, open(address), "two "+address)
	}
	leaveTwo()
	awaitWindows(1)
	ssetest.Want(t, "opened", open(address), "one "+address)
	leaveOne()
	awaitWindows(0)
	ssetest.Want(t, "the error", errors.Is(browsers.Open(address), errNoBrowser), true)

	// A window is let go at the end.
	stop := window("three")
	browsers.Close()
	awaitWindows(0)
	stop()
}

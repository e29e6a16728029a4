package login

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The programs of a user open one browser in five minutes for the login at a server, unless the one that has opened it
// ends before the login, in order or not, or somebody logs in.
func TestOneTabForAllPrograms(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Links: true}
	defer giveUpAll()
	begin := func() {
		t.Helper()
		_, isNew, err := c.Begin(t.Context())
		ssetest.Must(t, err)
		ssetest.Want(t, "a login begins", isNew, true)
	}
	mayOpen := func() bool { return c.TakeTab(t.Context()) != "" }
	ssetest.Want(t, "before any", mayOpen(), false)
	begin()
	ssetest.Want(t, "the first", mayOpen(), true)
	ssetest.Want(t, "the second", mayOpen(), false)
	giveUpAll()
	ssetest.Want(t, "after the end of the program, while none waits", mayOpen(), false)
	begin()
	ssetest.Want(t, "after the end of the program", mayOpen(), true)
	// It is killed: its lock is free, and its link is there.
	s := c.source()
	link, err := os.ReadFile(s.askFile(".link"))
	ssetest.Must(t, err)
	s.attempt.end(nil, errState)
	<-s.over
	ssetest.Want(t, "after a refusal", mayOpen(), false)
	ssetest.Must(t, os.WriteFile(s.askFile(".link"), link, 0o600))
	begin()
	ssetest.Want(t, "after the program was killed", mayOpen(), true)
	old, err := time.Now().Add(-Patience).MarshalText()
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(o.Store.tabFile(o.Server), old, 0o600))
	ssetest.Want(t, "after five minutes", mayOpen(), true)
	before := time.Now()
	ssetest.Want(t, "somebody has logged in since then", c.LoggedInSince(before), false)
	w.mustLogIn(t, o)
	ssetest.Want(t, "somebody has logged in since then", c.LoggedInSince(before), true)
	s.attempt.end(nil, errState) // it waited in vain
	<-s.over
	begin()
	ssetest.Want(t, "after a login", mayOpen(), true)
}

// A program that can open a browser opens it for a login that another one has begun, with the address that the link
// comes from, and of two that ask at once one does.
func TestTabForTheLoginOfAnotherProgram(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	c := Credentials{StateDir: filepath.Dir(o.Store.dir), Server: o.Server, Links: true}
	defer giveUpAll()
	link, _, err := c.Begin(t.Context())
	ssetest.Must(t, err)
	s := c.source()
	here := s.attempt
	s.attempt = nil // as in another program
	again, isNew, err := c.Begin(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "the link of the other", again, link)
	ssetest.Want(t, "it is new", isNew, false)
	var tabs atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if address := c.TakeTab(t.Context()); address != "" {
				ssetest.Want(t, "the address for a browser", address, here.BrowserAddress())
				tabs.Add(1)
			}
		})
	}
	all.Wait()
	ssetest.Want(t, "tabs", tabs.Load(), 1)
	// Somebody logs in while another program is about to open the address.
	w.mustLogIn(t, o)
	ssetest.Want(t, "the address of a login that is made", c.TakeTab(t.Context()), "")
	s.attempt = here
	here.end(nil, errState)
	<-s.over
}

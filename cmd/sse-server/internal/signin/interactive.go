package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/login"
)

const (
	// patience is how long a message waits for a person before it is answered with the link.
	patience = 20 * time.Second
	// lookEvery is how often a message that waits looks whether the program that asks for the login has ended.
	lookEvery = time.Second
)

// Interactive is the login of the person whose client started this program: it opens the browser itself, once for all
// programs of this user, when a message of the client needs the login. A program opens no other one until somebody has
// logged in: if the person is not there, or has refused, clients get the link.
type Interactive struct {
	login.Credentials

	// Open opens the browser. It does not wait.
	Open func(address string) error
	Log  *slog.Logger

	desk desk // nil: the credentials
	// once guards what follows.
	once   sync.Mutex
	opened time.Time // when this program has opened the browser; zero: it has not
}

// desk is what a person logs in with, as [login.Credentials] do.
type desk interface {
	Begin(ctx context.Context) (link string, isNew bool, err error)
	BrowserAddress(ctx context.Context) string
	TakeTab() bool
	LoggedInSince(then time.Time) bool
	AwaitLogin(ctx context.Context) bool
	Ask(ctx context.Context) (text, link string, done bool)
}

func (i *Interactive) at() desk {
	if i.desk != nil {
		return i.desk
	}
	return i.Credentials
}

// Opened opens the browser for a client that has just come.
func (i *Interactive) Opened() {
	i.Credentials.Opened()
	go func() { // ends with the timeout
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = i.begin(ctx)
	}()
}

// begin begins a login, and opens the browser if it may. It does nothing if one waits for its person. The error is nil
// also if another program asks for it.
func (i *Interactive) begin(ctx context.Context) error {
	i.once.Lock()
	defer i.once.Unlock()
	_, isNew, err := i.at().Begin(ctx)
	switch {
	case errors.Is(err, login.ErrAsked): // that program has opened the browser
		return nil
	case err != nil:
		i.Log.Warn("login not begun", "err", err)
		return err
	case !isNew || !i.mayOpen():
		return nil
	}
	i.opened = time.Now()
	if err := i.Open(i.at().BrowserAddress(ctx)); err != nil {
		i.Log.Warn("browser not opened", "err", err)
	}
	return nil
}

// mayOpen reports whether to open the browser for a login that has just begun.
func (i *Interactive) mayOpen() bool {
	isFirst := i.opened.IsZero() || i.at().LoggedInSince(i.opened)
	return isFirst && i.at().TakeTab()
}

// Ask has the person log in, and waits for that a while. If the program that has the login ends meanwhile, this one
// asks for it.
func (i *Interactive) Ask(ctx context.Context) (text, link string, done bool) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for waiting.Err() == nil && i.begin(waiting) == nil && !i.awaitLogin(waiting) {
	}
	return i.at().Ask(ctx)
}

// awaitLogin waits for the login until it is time to look who asks for it.
func (i *Interactive) awaitLogin(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	return i.at().AwaitLogin(ctx)
}

// Advise is that of the credentials, after the person has had time to log in.
func (i *Interactive) Advise(ctx context.Context, resp *http.Response, asks bool) (
	again bool, full, public, link string,
) {
	again, full, public, link = i.Credentials.Advise(ctx, resp, false)
	if again || full == "" || !asks || resp.StatusCode != http.StatusUnauthorized || i.LoggedIn() {
		return again, full, public, link
	}
	if _, _, done := i.Ask(ctx); done {
		return true, "", "", ""
	}
	return i.Credentials.Advise(ctx, resp, true)
}

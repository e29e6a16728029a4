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

// patience is how long a message waits for a person before it is answered with the link.
const patience = 20 * time.Second

// Interactive is the login of the person whose client started this program: it opens the browser itself, once for all
// programs of this user, when a message of the client needs the login.
type Interactive struct {
	login.Credentials

	// Open opens the browser. It does not wait.
	Open func(address string) error
	Log  *slog.Logger
	// once has one while a browser is being opened.
	once sync.Mutex
}

// Opened opens the browser for a client that has just come.
func (i *Interactive) Opened() {
	i.Credentials.Opened()
	go func() { // ends with the timeout
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _ = i.begin(ctx)
	}()
}

// begin begins a login, and opens the browser if nobody has done so.
func (i *Interactive) begin(ctx context.Context) (link string, err error) {
	i.once.Lock()
	defer i.once.Unlock()
	link, isNew, err := i.Begin(ctx)
	if err != nil {
		if !errors.Is(err, login.ErrAsked) { // else another program of this user has opened the browser
			i.Log.Warn("login not begun", "err", err)
		}
		return "", err
	}
	if isNew {
		if err := i.Open(i.BrowserAddress(ctx)); err != nil {
			i.Log.Warn("browser not opened", "err", err)
		}
	}
	return link, nil
}

// Ask has the person log in, and waits for that a while.
func (i *Interactive) Ask(ctx context.Context) (text, link string, done bool) {
	if _, err := i.begin(ctx); err == nil || errors.Is(err, login.ErrAsked) {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		i.AwaitLogin(waiting)
	}
	return i.Credentials.Ask(ctx)
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

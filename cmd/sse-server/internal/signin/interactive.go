package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/login"
)

const (
	// patience is how long a message waits for a person before it is answered with the link.
	patience = 20 * time.Second
	// lookEvery is how often a message that waits looks whether the program that asks for the login has ended.
	lookEvery = time.Second
	// settleTime is how long a client must stay before the browser is opened for it, unless it calls something.
	settleTime = 2 * time.Second
)

// Interactive is the login of the person whose client started this program: it opens the browser itself, once for all
// programs of this user, when a message of the client needs the login. A program opens no other one until somebody has
// logged in: if the person is not there, or has refused, clients get the link.
type Interactive struct {
	login.Credentials

	// Open opens the browser. It does not wait.
	Open func(address string) error
	// Came returns when the newest of those came whose browser Open opens; false if nobody is there. nil: somebody is.
	Came func() (at time.Time, is bool)
	// AtCalls has a client that comes open no browser: it is one of several servers that may need a login, and each
	// would open a tab.
	AtCalls atomic.Bool
	Log     *slog.Logger

	desk desk // nil: the credentials
	// once guards what follows.
	once   sync.Mutex
	opened time.Time // when this program has opened the browser; zero: it has not

	mu     sync.Mutex // guards what follows
	failed time.Time  // when no browser could be opened; zero: none has failed
}

// desk is what a person logs in with, as [login.Credentials] do.
type desk interface {
	Begin(ctx context.Context) (link string, isNew bool, err error)
	TakeTab(ctx context.Context) (address string)
	ReturnTab()
	LoggedIn() bool
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

// isThere reports whether there is somebody whose browser can be opened: none has failed since that person came.
func (i *Interactive) isThere() bool {
	i.mu.Lock()
	failed := i.failed
	i.mu.Unlock()
	if i.Came == nil {
		return failed.IsZero()
	}
	came, is := i.Came()
	return is && (failed.IsZero() || came.After(failed))
}

// Opened opens the browser for a client that has come, and stays: its session lasts as long as stays. Editors also
// start servers to see whether they work, such as `claude mcp list`, and end them at once; the tab would be dead then.
func (i *Interactive) Opened(stays context.Context) {
	i.Credentials.Opened(stays)
	if i.AtCalls.Load() || !i.isThere() {
		return
	}
	go func() { // ends with the session or the timeout
		select {
		case <-time.After(settleTime):
		case <-stays.Done():
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = i.begin(ctx)
	}()
}

// begin begins a login unless one waits for its person, here or in another program, and opens the browser if no program
// has. The error is nil also if another program is just beginning one, and not if no browser can be opened. It does
// nothing if somebody has logged in meanwhile: another tab would be one for nobody.
func (i *Interactive) begin(ctx context.Context) error {
	i.once.Lock()
	defer i.once.Unlock()
	if i.at().LoggedIn() {
		return nil
	}
	_, _, err := i.at().Begin(ctx)
	switch {
	case errors.Is(err, login.ErrAsked):
		return nil
	case err != nil:
		i.Log.Warn("login not begun", "err", err)
		return err
	case i.at().LoggedIn(), !i.mayOpen():
		return nil
	}
	address := i.at().TakeTab(ctx)
	if address == "" {
		return nil
	}
	i.opened = time.Now()
	if err := i.Open(address); err != nil {
		i.Log.Warn("browser not opened", "err", err)
		i.mu.Lock()
		i.failed = time.Now()
		i.mu.Unlock()
		i.at().ReturnTab() // another program may have a browser
		return err
	}
	return nil
}

// mayOpen reports whether this program may open a browser: it has opened none, or somebody has logged in or come since.
func (i *Interactive) mayOpen() bool {
	if i.opened.IsZero() || i.at().LoggedInSince(i.opened) {
		return true
	}
	if i.Came == nil {
		return false
	}
	came, is := i.Came()
	return is && came.After(i.opened)
}

// Ask has the person log in, and waits for that a while. If the program that has the login ends meanwhile, this one
// asks for it.
func (i *Interactive) Ask(ctx context.Context) (text, link string, done bool) {
	if !i.isThere() || i.at().LoggedIn() {
		return i.at().Ask(ctx)
	}
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
	if !i.isThere() {
		return i.Credentials.Advise(ctx, resp, asks)
	}
	again, full, public, link = i.Credentials.Advise(ctx, resp, false)
	if again || full == "" || !asks || resp.StatusCode != http.StatusUnauthorized || i.LoggedIn() {
		return again, full, public, link
	}
	if _, _, done := i.Ask(ctx); done {
		return true, "", "", ""
	}
	return i.Credentials.Advise(ctx, resp, true)
}

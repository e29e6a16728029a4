package login

import (
	"errors"
	"net/http"
	"net/netip"
	"os"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// open opens an address as a browser does, and returns the status of the last page.
func open(t *testing.T, address string) int {
	t.Helper()
	resp, err := http.Get(address)
	ssetest.Must(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// A login that another user has made with the address of the browser is undone when the browser comes: nothing is
// written to an account of that user.
func TestBrowserThatComesSecondUndoesTheLogin(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options(t)
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	ssetest.Want(t, "status of the first", open(t, a.BrowserAddress()), http.StatusOK)
	_, err = a.Wait(t.Context())
	ssetest.Must(t, err)
	ssetest.Want(t, "status of the second", open(t, a.BrowserAddress()), http.StatusGone)
	ssetest.Want(t, "state", a.State(), Failed)
	_, err = a.Wait(t.Context())
	ssetest.WantText(t, "error", err, "opened twice")
	if all, err := o.Store.All(); len(all) > 0 || err != nil {
		t.Errorf("kept: %v, %v", all, err)
	}
	ssetest.Want(t, "good refresh tokens", len(w.refresh), 0)
}

// While the issuer is asked for the token, the second opening has it thrown away.
func TestBrowserThatComesSecondDuringTheExchange(t *testing.T) {
	var a *Attempt
	w := newWorld(t, func(w *world) {
		w.token = func(http.ResponseWriter, *http.Request) bool {
			ssetest.Want(t, "status of the second", open(t, a.BrowserAddress()), http.StatusGone)
			return false
		}
	})
	o := w.options(t)
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	open(t, a.BrowserAddress())
	_, err = a.Wait(t.Context())
	ssetest.WantText(t, "error", err, "opened twice")
	a.Close() // waits for the browser, so that all is over
	if all, err := o.Store.All(); len(all) > 0 || err != nil {
		t.Errorf("kept: %v, %v", all, err)
	}
}

// The address of the browser is no good to another user of the machine, and stays good for the browser.
func TestBrowserOfAnotherUser(t *testing.T) {
	w := newWorld(t, nil)
	a, err := Begin(t.Context(), w.options(t))
	ssetest.Must(t, err)
	defer a.Close()
	uid := os.Getuid() + 1
	a.peer = func(_, _ netip.AddrPort) (int, bool) { return uid, true }
	ssetest.Want(t, "status for another user", open(t, a.BrowserAddress()), http.StatusForbidden)
	ssetest.Want(t, "state", a.State(), Waiting)
	uid = os.Getuid()
	ssetest.Want(t, "status for the browser", open(t, a.BrowserAddress()), http.StatusOK)
	_, err = a.Wait(t.Context())
	ssetest.Must(t, err)
}

// A login that is given up while the issuer is asked for the token has one outcome.
func TestLoginThatIsGivenUpDuringTheExchange(t *testing.T) {
	var a *Attempt
	givenUp := errors.New("given up")
	w := newWorld(t, func(w *world) {
		w.token = func(http.ResponseWriter, *http.Request) bool {
			a.end(nil, givenUp)
			return false
		}
	})
	o := w.options(t)
	a, err := Begin(t.Context(), o)
	ssetest.Must(t, err)
	defer a.Close()
	ssetest.Want(t, "status of the last page", open(t, a.BrowserAddress()), http.StatusOK)
	_, err = a.Wait(t.Context())
	ssetest.Want(t, "error", err, givenUp)
	all, err := o.Store.All()
	ssetest.Must(t, err)
	ssetest.Want(t, "logins that are kept", len(all), 0)
	ssetest.Want(t, "state", a.State(), Failed)
}

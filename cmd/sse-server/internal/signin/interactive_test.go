package signin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/login"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// fakeDesk has logins of a person who may never come. Another program may have the login.
type fakeDesk struct {
	asksUntil time.Time // when another program ends that asks
	refuses   bool      // the server has no login that can begin
	elsewhere bool      // another program has begun the login, and has the link
	begun     time.Time // the login that waits; zero: none
	tab       time.Time // as all programs know
	logged    time.Time // when somebody has logged in
	logsInAt  time.Time // when the person comes
	logsIn    bool      // the person comes while a login begins
	ended     bool      // the login that was made
	beginning int       // how many logins have begun
}

func (d *fakeDesk) Begin(context.Context) (string, bool, error) {
	switch {
	case d.refuses:
		return "", false, errors.New("the issuer registers no clients")
	case time.Now().Before(d.asksUntil):
		return "", false, login.ErrAsked
	case !d.begun.IsZero() && time.Since(d.begun) < login.Patience:
		return "link", false, nil
	case d.elsewhere:
		return "link", false, nil
	}
	d.begun = time.Now()
	d.beginning++
	if d.logsIn {
		d.logsInAt = time.Now()
	}
	return "link", true, nil
}

func (d *fakeDesk) TakeTab(context.Context) string {
	if !d.tab.IsZero() && time.Since(d.tab) < login.Patience {
		return ""
	}
	d.tab = time.Now()
	return "http://127.0.0.1:1/start/x"
}

func (d *fakeDesk) ReturnTab() { d.tab = time.Time{} }

func (d *fakeDesk) LoggedIn() bool { return d.isIn() && !d.ended }

func (d *fakeDesk) LoggedInSince(then time.Time) bool { return d.logged.After(then) }

func (d *fakeDesk) AwaitLogin(ctx context.Context) bool {
	for !d.isIn() {
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// isIn reports whether somebody has logged in.
func (d *fakeDesk) isIn() bool {
	if !d.logsInAt.IsZero() && !time.Now().Before(d.logsInAt) && d.logged.IsZero() {
		d.logged, d.begun, d.tab = time.Now(), time.Time{}, time.Time{}
	}
	return !d.logged.IsZero()
}

func (d *fakeDesk) Ask(context.Context) (string, string, bool) {
	return "log in at link", "link", d.isIn()
}

// newInteractive returns the login of a person at a desk, and how many tabs were opened.
func newInteractive(d *fakeDesk) (i *Interactive, tabs *int, log *ssetest.Output) {
	tabs, log = new(int), new(ssetest.Output)
	return &Interactive{desk: d, Log: ssetest.Logger(log), Open: func(string) error { *tabs++; return nil }}, tabs, log
}

// A model that tries again and again, while nobody is there, opens one tab, and gets the link each time. So it is after
// the person has refused.
func TestOneTab(t *testing.T) {
	for name, refuse := range map[string]bool{"nobody is there": false, "the person refuses": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := new(fakeDesk)
				i, tabs, _ := newInteractive(d)
				for range 30 { // 15 minutes
					began := time.Now()
					_, link, done := i.Ask(t.Context())
					ssetest.Want(t, "link", link, "link")
					ssetest.Want(t, "done", done, false)
					ssetest.Want(t, "the wait", time.Since(began), patience)
					if refuse {
						d.begun = time.Time{} // the issuer has sent the browser back with an error
					}
					time.Sleep(10 * time.Second)
				}
				ssetest.Want(t, "tabs", *tabs, 1)
				if d.beginning < 3 {
					t.Errorf("%d logins have begun: nobody could log in by the link any more", d.beginning)
				}
			})
		})
	}
}

// A call that waits goes on when the person has logged in. When that login has ended, a tab is opened again.
func TestCallThatWaitsGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDesk{logsInAt: time.Now().Add(7 * time.Second)}
		i, tabs, _ := newInteractive(d)
		began := time.Now()
		_, _, done := i.Ask(t.Context())
		ssetest.Want(t, "done", done, true)
		if waited := time.Since(began); waited < 7*time.Second || waited > 8*time.Second {
			t.Errorf("it has waited %v", waited)
		}
		time.Sleep(time.Second)
		_ = i.begin(t.Context())
		ssetest.Want(t, "logins that have begun", d.beginning, 1)
		ssetest.Want(t, "tabs for one that is made", *tabs, 1)
		d.ended = true
		_ = i.begin(t.Context())
		ssetest.Want(t, "tabs", *tabs, 2)
	})
}

// A login that is made while another one begins opens no tab.
func TestLoginThatIsMadeMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, tabs, _ := newInteractive(&fakeDesk{logsIn: true})
		_, _, done := i.Ask(t.Context())
		ssetest.Want(t, "done", done, true)
		ssetest.Want(t, "tabs", *tabs, 0)
	})
}

// If the program that has opened the browser ends before the login, one that waits asks for it.
func TestProgramThatAsksEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := &fakeDesk{asksUntil: began.Add(5 * time.Second)}
		i, tabs, _ := newInteractive(d)
		_, _, _ = i.Ask(t.Context())
		ssetest.Want(t, "tabs", *tabs, 1)
		if after := d.tab.Sub(began); after < 5*time.Second || after > 7*time.Second {
			t.Errorf("it was opened after %v", after)
		}
	})
}

// A server whose login needs a terminal is not waited for.
func TestLoginThatCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, tabs, log := newInteractive(&fakeDesk{refuses: true})
		began := time.Now()
		_, _, done := i.Ask(t.Context())
		ssetest.Want(t, "done", done, false)
		ssetest.Want(t, "the wait", time.Since(began), time.Duration(0))
		ssetest.Want(t, "tabs", *tabs, 0)
		ssetest.WantText(t, "log", log.String(), "login not begun")
	})
}

// A gateway that has the link of a login opens no browser: the first program that can opens one.
func TestLoginThatAGatewayHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDesk{elsewhere: true}
		one, tabs, _ := newInteractive(d)
		other, otherTabs, _ := newInteractive(d)
		for range 2 {
			_, _, _ = one.Ask(t.Context())
			_, _, _ = other.Ask(t.Context())
		}
		ssetest.Want(t, "tabs", *tabs, 1)
		ssetest.Want(t, "tabs of the other program", *otherTabs, 0)
	})
}

// Clients get the link at once while no window can open a browser. A window that comes later, and has a browser, opens
// a tab.
func TestPersonWhoComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, tabs, _ := newInteractive(new(fakeDesk))
		var came time.Time
		i.Came = func() (time.Time, bool) { return came, !came.IsZero() }
		for _, step := range []struct {
			what  string
			comes bool
			waits time.Duration
			tabs  int
		}{
			{"nobody is there", false, 0, 0},
			{"somebody comes", true, patience, 1},
			{"the same person, later", false, patience, 1},
			{"somebody else comes", true, patience, 2},
		} {
			time.Sleep(login.Patience)
			if step.comes {
				came = time.Now()
			}
			began := time.Now()
			_, link, _ := i.Ask(t.Context())
			ssetest.Want(t, step.what+": link", link, "link")
			ssetest.Want(t, step.what+": the wait", time.Since(began), step.waits)
			ssetest.Want(t, step.what+": tabs", *tabs, step.tabs)
		}
	})
}

// Where no browser can be opened, a client has the link at once, and another program may have a browser. A window that
// comes later is tried.
func TestBrowserThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(fakeDesk)
		i, _, log := newInteractive(d)
		tries := 0
		i.Open = func(string) error { tries++; return errors.New("no xdg-open") }
		ask := func(what string, wantTries int) {
			t.Helper()
			began := time.Now()
			_, link, _ := i.Ask(t.Context())
			ssetest.Want(t, what+": link", link, "link")
			ssetest.Want(t, what+": the wait", time.Since(began), time.Duration(0))
			ssetest.Want(t, what+": tries", tries, wantTries)
			time.Sleep(time.Second)
		}
		ask("the first call", 1)
		ask("the second call", 1)
		ssetest.WantText(t, "log", log.String(), "browser not opened", "no xdg-open")
		came := time.Now().Add(-time.Minute)
		i.Came = func() (time.Time, bool) { return came, true }
		ask("a window that was there", 1)
		came = time.Now()
		ask("a window that came since", 2)
		other, tabs, _ := newInteractive(d)
		_, _, _ = other.Ask(t.Context())
		ssetest.Want(t, "tabs of another program", *tabs, 1)
	})
}

// Somebody who is logged in is not asked to log in, nor waited for, while the login cannot be used.
func TestNobodyHasToLogIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, tabs, _ := newInteractive(&fakeDesk{logged: time.Now()})
		i.Opened(t.Context())
		began := time.Now()
		_, _, _ = i.Ask(t.Context())
		synctest.Wait()
		ssetest.Want(t, "the wait", time.Since(began), time.Duration(0))
		ssetest.Want(t, "tabs", *tabs, 0)
		time.Sleep(settleTime + patience) // its goroutine ends
	})
}

// A client that comes, and stays, opens the browser, unless its server is one of several that may need a login, or nobody
// is there. One that goes at once, as after a look whether the server works, opens none.
func TestClientThatComes(t *testing.T) {
	const long = time.Minute
	for name, test := range map[string]struct {
		set    func(*Interactive)
		stays  time.Duration
		begins int
	}{
		"one server":      {func(*Interactive) {}, long, 1},
		"it goes at once": {func(*Interactive) {}, settleTime - 1, 0},
		"several servers": {func(i *Interactive) { i.AtCalls.Store(true) }, long, 0},
		"nobody is there": {func(i *Interactive) { i.Came = func() (time.Time, bool) { return time.Time{}, false } }, long, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := new(fakeDesk)
				i, tabs, _ := newInteractive(d)
				test.set(i)
				stays, cancel := context.WithTimeout(t.Context(), test.stays)
				defer cancel()
				i.Opened(stays)
				time.Sleep(settleTime)
				synctest.Wait()
				ssetest.Want(t, "logins that have begun", d.beginning, test.begins)
				ssetest.Want(t, "tabs", *tabs, test.begins)
				time.Sleep(patience) // its goroutine ends
			})
		})
	}
}

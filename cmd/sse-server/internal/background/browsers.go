package background

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// browserPath is where a window of a shared sse-server waits for addresses that it opens in the browser of its person.
const browserPath = "/-/browser"

// Browsers are those of the people at the windows of a shared sse-server. A window opens its own: it knows where its
// person is, and the shared sse-server does not. Make it with NewBrowsers. It is safe for concurrent use.
type Browsers struct {
	over  chan struct{} // closed by Close
	close func()

	mu      sync.Mutex
	windows []*window // those that can open a browser, the newest last
}

// window is one that can open a browser.
type window struct {
	came      time.Time
	addresses chan string // to open
}

// maxAddresses bounds the addresses that a window has not read yet.
const maxAddresses = 8

// NewBrowsers returns those of no window.
func NewBrowsers() *Browsers {
	b := &Browsers{over: make(chan struct{})}
	b.close = sync.OnceFunc(func() { close(b.over) })
	return b
}

// Close lets all windows go.
func (b *Browsers) Close() { b.close() }

// Newest returns when the newest window came that can open a browser; false if there is none.
func (b *Browsers) Newest() (came time.Time, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.windows) == 0 {
		return time.Time{}, false
	}
	return b.windows[len(b.windows)-1].came, true
}

// errNoBrowser reports that no window can open a browser.
var errNoBrowser = errors.New("no program that shares this one can open a browser")

// Open has the newest window open an address. It does not wait.
func (b *Browsers) Open(address string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range slices.Backward(b.windows) {
		select {
		case w.addresses <- address:
			return nil
		default: // it does not read
		}
	}
	return errNoBrowser
}

// add adds a window, until leave is called.
func (b *Browsers) add() (w *window, leave func()) {
	w = &window{time.Now(), make(chan string, maxAddresses)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.windows = append(b.windows, w)
	return w, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.windows = slices.DeleteFunc(b.windows, func(other *window) bool { return other == w })
	}
}

// serve answers a window with a line for each address to open, as long as it is there.
func (b *Browsers) serve(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	_, _ = out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Time{}) // fails where there are none
	from, leave := b.add()
	defer leave()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	for out.Flush() == nil {
		select {
		case address := <-from.addresses:
			_, _ = fmt.Fprintln(w, address) // Flush fails then
		case <-r.Context().Done():
			return
		case <-b.over:
			return
		}
	}
}

// lending is a session during which the shared sse-server may have the browser of the window opened.
type lending struct {
	jsonrpc.Attributed
	stop func()
}

// Close ends the session.
func (l *lending) Close() error {
	l.stop()
	return l.Attributed.Close()
}

// lend has the shared sse-server open addresses in the browser of this window, until stop is called. It returns once
// that knows of the window; ctx bounds the wait.
func (s *Shared) lend(ctx context.Context, who *greeting) (stop func(), err error) {
	lasting, cancel := context.WithCancel(context.Background())
	unbind := context.AfterFunc(ctx, cancel)
	r, err := http.NewRequestWithContext(lasting, http.MethodGet, "http://"+s.at.Host+browserPath, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	r.Header.Set(instanceHeader, who.Instance)
	response, err := s.client.Do(r)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(errors.New(response.Status), response.Body.Close())
	}
	unbind() // the stream outlives ctx
	if err != nil {
		cancel()
		return nil, err
	}
	go func() { // ends with lasting, or the shared sse-server
		defer response.Body.Close()
		s.openAll(response.Body)
	}()
	return cancel, nil
}

// openAll opens the addresses that the shared sse-server writes.
func (s *Shared) openAll(addresses io.Reader) {
	for lines := bufio.NewScanner(addresses); lines.Scan(); {
		err := errors.New("it is no address of a login on this machine")
		if at, _ := url.Parse(lines.Text()); at != nil && at.Scheme == "http" && at.Hostname() == "127.0.0.1" {
			err = s.OpenBrowser(lines.Text())
		}
		if err != nil {
			s.log.Warn("browser not opened", "err", err)
		}
	}
}

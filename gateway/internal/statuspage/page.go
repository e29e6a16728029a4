// Package statuspage serves the status page: for people, at /status and below it. It shows what
// a Source says of servers and their connections, and changes nothing.
//
// Everything is sorted, filtered and paged here, so the page works without JavaScript. With
// it, the page follows an EventSource that says when something has changed, and gets itself
// again: the browser keeps one page, and this process nothing of the browser.
//
// All viewers share one look at the servers a second.
package statuspage

import (
	"bytes"
	"cmp"
	"embed"
	"hash/maphash"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/multiplex"
)

// Server is a server, with its connections.
type Server struct {
	Name string // "" for the only one
	// Upstream is how the server is reached: a child process, a URL, or in process; Place
	// says where, or is empty.
	Upstream, Place string
	// Initialized is what the server said of itself; nil if that is not known.
	Initialized *connstate.Server
	// Tools is the size of its list of tools; nil if no client has read it.
	Tools *multiplex.ToolList

	Draining, Failing bool
	Started           time.Time // the last start that worked; zero: none has
	Failure           string    // the last failed start or lost session; "" for none
	Failed            time.Time // when that was

	Sessions, Children, Restarts, Crashes int

	Hour        Hour
	Connections []connstate.Snapshot
}

// Source returns the servers as they are now. It must be safe for concurrent use. It
// reports false once they have been shut down.
type Source func() (servers []Server, open bool)

//go:embed status.html style.css live.js
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(files, "status.html"))
})

// policy is the Content-Security-Policy: the browser gets nothing from elsewhere, and runs
// nothing that stands in a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Page serves the status page. Make it with New.
type Page struct {
	source   Source
	watchers atomic.Int64

	mu   sync.Mutex // guards what follows, and is held while the source is asked
	last *look      // nil: the last one is too old
}

// New returns the handler of /status and all below it.
func New(source Source) http.Handler {
	p := &Page{source: source}
	routes := mux.NewRouter()
	routes.Path("/status").HandlerFunc(p.overview)
	routes.Path("/status/").HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "../status") // not from the root: there may be a prefix before it
		w.WriteHeader(http.StatusMovedPermanently)
	})
	routes.Path("/status/servers/{name}").HandlerFunc(p.server)
	routes.Path("/status/connections/{id}").HandlerFunc(p.connection)
	routes.Path("/status/events").HandlerFunc(p.events)
	routes.Path("/status/{file:style.css|live.js}").HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, mux.Vars(r)["file"])
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		routes.ServeHTTP(w, r)
	})
}

// look is what a Source said at one moment.
type look struct {
	at      time.Time
	servers []Server
	open    bool
	sum     uint64 // differs when the servers or connections differ
}

// lookAge is how long viewers share a look.
const lookAge = time.Second

// look returns a look that is at most lookAge old.
func (p *Page) look() *look {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		l := &look{at: time.Now()}
		l.servers, l.open = p.source()
		l.sum = l.hash()
		p.last = l
		time.AfterFunc(lookAge, func() { // nobody may come for it again
			p.mu.Lock()
			defer p.mu.Unlock()
			p.last = nil
		})
	}
	return p.last
}

var seed = maphash.MakeSeed()

// hash returns a hash of what changes on the page. It has the minute, because times on the
// page are relative.
func (l *look) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, l.at.Unix()/60)
	for i := range l.servers {
		s := &l.servers[i]
		maphash.WriteComparable(&h, struct {
			name, failure string
			state         health
			numbers       [5]int
			failed        int64
			hour          Hour
		}{s.Name, s.Failure, s.health(l.at), [5]int{s.Sessions, s.Children, s.Restarts, s.Crashes, len(s.Connections)}, s.Failed.UnixNano(), s.Hour})
		var sum uint64 // the connections come in no order
		for j := range s.Connections {
			c := &s.Connections[j]
			sum += maphash.Comparable(seed, struct {
				id      string
				state   connstate.State
				numbers [3]int
			}{c.ID, c.State, [3]int{c.InFlight, int(c.RequestsDone), c.Attempts}})
		}
		maphash.WriteComparable(&h, sum)
	}
	return h.Sum64()
}

// head is what all pages have.
type head struct {
	Root   string // the relative path of what is above /status
	Title  string
	Colour string // of the icon
	At     time.Time
	Sum    string // of the look
}

// Kinds are the drawings of a server.
func (head) Kinds() []string { return []string{"handshakes", "requests", "errors"} }

// colours are those of the icon, for healths of servers and states of connections; they can
// be told from each other on light and dark.
var colours = map[string]string{
	"failing": "crimson", "failed": "crimson", "unstable": "orange", "initializing": "orange", "healthy": "seagreen", "ready": "seagreen",
}

func (l *look) head(root, title, condition string) head {
	return head{root, title, cmp.Or(colours[condition], "gray"), l.at, strconv.FormatUint(l.sum, 36)}
}

func (p *Page) overview(w http.ResponseWriter, r *http.Request) {
	l := p.look()
	p.render(w, http.StatusOK, "overview", newOverview(l, r.URL.Query()))
}

func (p *Page) server(w http.ResponseWriter, r *http.Request) {
	l, name := p.look(), mux.Vars(r)["name"]
	for _, s := range l.servers {
		if s.label() == name {
			p.render(w, http.StatusOK, "server", newServerView(l, s, r.URL.Query()))
			return
		}
	}
	p.missing(w, l, "There is no server of that name", "It may have been removed from the configuration.")
}

func (p *Page) connection(w http.ResponseWriter, r *http.Request) {
	l, id := p.look(), mux.Vars(r)["id"]
	for _, s := range l.servers {
		for _, c := range s.Connections {
			if c.ID == id {
				p.render(w, http.StatusOK, "connection", newConnectionView(l, s, c))
				return
			}
		}
	}
	p.missing(w, l, "There is no connection of that id", "It is closed. The log says why: look for connectionId="+clip(id, 16)+".")
}

// missing answers for something that is not there, or not any more.
func (p *Page) missing(w http.ResponseWriter, l *look, title, text string) {
	p.render(w, http.StatusNotFound, "missing", struct {
		head
		Text string
	}{l.head("../../", title, ""), text})
}

func (p *Page) render(w http.ResponseWriter, code int, name string, view any) {
	var page bytes.Buffer
	if err := templates().ExecuteTemplate(&page, name, view); err != nil {
		http.Error(w, "the status page is broken: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(code)
	_, _ = page.WriteTo(w) // an error means that the browser is gone
}

// label returns the name of a server on the page and in its path.
func (s *Server) label() string {
	if s.Name == "" {
		return "server"
	}
	return s.Name
}

// health is how a server is.
type health string

// The healths of servers, the worst first.
const (
	failing    health = "failing"
	unstable   health = "unstable"
	starting   health = "starting"
	draining   health = "draining"
	healthy    health = "healthy"
	notStarted health = "not started"
)

// healths are all of them, in this order.
var healths = []health{failing, unstable, starting, draining, healthy, notStarted}

// recently is how long a failure makes a server unstable.
const recently = 5 * time.Minute

func (s *Server) health(now time.Time) health {
	switch {
	case s.Draining:
		return draining
	case s.Failing:
		return failing
	case s.Failure != "" && now.Sub(s.Failed) < recently:
		return unstable
	case !s.Started.IsZero():
		return healthy
	case s.Sessions > 0:
		return starting
	}
	return notStarted
}

// contains reports whether a text contains another one in lower case.
func contains(s, lower string) bool { return strings.Contains(strings.ToLower(s), lower) }

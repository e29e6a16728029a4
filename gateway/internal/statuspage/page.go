// Package statuspage serves /status and what is below it: pages for people, of what a
// Source says of servers and their connections.
//
// All is sorted, filtered and paged here, so the pages work without JavaScript. With it, a
// page follows an EventSource that says when something has changed, and gets itself again:
// the browser keeps one page, and this process nothing of the browser. All viewers share
// one look at the servers a second.
package statuspage

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"hash/maphash"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// Server is a server, with its connections.
type Server struct {
	Name string // "" for the only one
	// Upstream is how the server is reached: by a child process, at a URL, in process, or as a view.
	// Place says where, or is empty.
	Upstream, Place string
	handshake.Health
	metrics.Totals
	NeedsLogin   bool                // it wants a person to log in
	LoginCommand string              // what that person types; empty: not all may know it
	Tools        *multiplex.ToolList // nil if nobody has read it
	Hour         metrics.Hour
	Connections  []connstate.Snapshot
	Members      []compose.Report // of a view; none if the server is none
}

// Source returns the servers and replicas as they are now, and whether they have not been
// shut down. It must be safe for concurrent use.
type Source func() (servers []Server, replicas []httpcheck.Replica, open bool)

//go:embed status.html style.css live.js
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(files, "status.html"))
})

// With policy, a browser loads nothing from elsewhere and runs no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// page serves the pages.
type page struct {
	source   Source
	watchers atomic.Int64

	mu   sync.Mutex // guards what follows, and is held while the source is asked
	last *look      // nil: the last one is too old
}

// New returns the handler of /status and what is below it.
func New(source Source) http.Handler {
	p := &page{source: source}
	routes := mux.NewRouter()
	routes.Path("/status").HandlerFunc(p.overview)
	routes.Path("/status/").HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "../status") // not from the root: there may be a prefix before it
		w.WriteHeader(http.StatusMovedPermanently)
	})
	routes.Path("/status/servers/{name}").HandlerFunc(p.server)
	routes.Path("/status/connections/{id}").HandlerFunc(p.connection)
	routes.Path("/status/events").Methods(http.MethodGet).HandlerFunc(p.events)
	for name, kind := range map[string]string{"style.css": "text/css", "live.js": "text/javascript"} {
		routes.Path("/status/" + name).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind+"; charset=utf-8") // what the system says may be wrong
			http.ServeFileFS(httpanswer.Bound(w, r), r, files, name)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		routes.ServeHTTP(w, r)
	})
}

// look is what the source said at one moment.
type look struct {
	At       time.Time
	Servers  []*server           // those that need attention first
	Replicas []httpcheck.Replica // none: there is no cluster
	Sum      uint64              // differs when what is shown differs
	open     bool
}

// lookAge is how long viewers share a look.
const lookAge = time.Second

// look returns a look that is at most lookAge old.
func (p *page) look() *look {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil {
		return p.last
	}
	l := &look{At: time.Now()}
	all, replicas, open := p.source()
	for i := range all {
		l.Servers = append(l.Servers, newServer(&all[i], l.At))
	}
	slices.SortFunc(l.Servers, func(a, b *server) int { // those that need attention first
		return cmp.Or(slices.Index(conditions, a.Condition)-slices.Index(conditions, b.Condition),
			cmp.Compare(a.Label, b.Label))
	})
	l.Replicas, l.open = replicas, open
	l.Sum = l.sum()
	p.last = l
	time.AfterFunc(lookAge, func() { // nobody may come for it again
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = nil
	})
	return l
}

var seed = maphash.MakeSeed()

// sum has the minute, because times on a page are relative.
func (l *look) sum() uint64 {
	text := fmt.Sprint(l.At.Unix()/60, l.Replicas)
	for _, s := range l.Servers {
		text += fmt.Sprint(s.Name, s.Condition, s.States, s.InFlight, s.Totals, s.Failed.UnixNano(), s.Hour, s.Members)
	}
	return maphash.String(seed, text)
}

// view is what a template shows. Server and Connection are those of its page.
type view struct {
	*look
	Root       string // the relative path of what is above /status
	Listed     pager  // of Servers
	Server     *server
	Connection *connection
	List       list
	Missing    string
}

func (p *page) overview(w http.ResponseWriter, r *http.Request) {
	l, query := p.look(), r.URL.Query()
	render(w, r, http.StatusOK, "overview", view{
		look: l, Listed: newPager(query, "servers", len(l.Servers)), List: newList(l.Servers, query, ""),
	})
}

func (p *page) server(w http.ResponseWriter, r *http.Request) {
	l, query := p.look(), r.URL.Query()
	v := view{look: l, Root: "../../", Missing: "There is no server of that name"}
	for _, s := range l.Servers {
		if s.Label == mux.Vars(r)["name"] {
			query.Del("server")
			v.Server, v.List = s, newList([]*server{s}, query, v.Root)
			render(w, r, http.StatusOK, "server", v)
			return
		}
	}
	render(w, r, http.StatusNotFound, "missing", v)
}

func (p *page) connection(w http.ResponseWriter, r *http.Request) {
	id := mux.Vars(r)["id"]
	v := view{look: p.look(), Root: "../../",
		Missing: "There is no connection of that id; the log says why it was closed: connectionId=" + printable(id, 16)}
	for _, s := range v.Servers {
		if i := slices.IndexFunc(s.Connections, func(c connstate.Snapshot) bool { return c.ID == id }); i >= 0 {
			v.Connection = &connection{Snapshot: &s.Connections[i], Of: s, Root: v.Root}
			render(w, r, http.StatusOK, "connection", v)
			return
		}
	}
	render(w, r, http.StatusNotFound, "missing", v)
}

func render(w http.ResponseWriter, r *http.Request, code int, name string, v view) {
	var body bytes.Buffer
	if err := templates().ExecuteTemplate(&body, name, v); err != nil {
		http.Error(w, "the status page is broken: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	httpanswer.WriteBody(w, r, code, body.Bytes())
}

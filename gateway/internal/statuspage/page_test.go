package statuspage

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/multiplex"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// conn returns a connection that is ready since it was opened.
func conn(id, client string, opened time.Time) connstate.Snapshot {
	return connstate.Snapshot{
		ID: id, State: connstate.Ready, Since: opened, Opened: opened, Ready: opened.Add(20 * time.Millisecond),
		Transport: connstate.TransportStreamable, Client: &connstate.ClientInfo{Name: client, Version: "1.0"},
	}
}

// serving returns a page that shows the servers.
func serving(servers ...Server) http.Handler {
	return New(func() ([]Server, []httpcheck.Replica, bool) { return servers, nil, true })
}

func get(t *testing.T, h http.Handler, target string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, nil))
	return rec.Code, rec.Body.String()
}

var linkedID = regexp.MustCompile(`<th scope="row" data-label="Connection"><a id="c-[^"]*" href="(?:\.\./\.\./)?status/connections/([^"]*)">`)

// ids returns the connections that a page lists, in its order.
func ids(body string) (all []string) {
	for _, m := range linkedID.FindAllStringSubmatch(body, -1) {
		all = append(all, m[1])
	}
	return all
}

// Somebody who sees the page for the first time finds the failing server: the page names it
// first, in words, with the cause.
func TestFailingServersComeFirst(t *testing.T) {
	now := time.Now()
	h := serving(
		Server{Name: "a-new"},
		Server{Name: "b-healthy", Health: handshake.Health{Started: now.Add(-time.Hour), Failure: "old", Failed: now.Add(-time.Hour)}},
		Server{Name: "c-unstable", Health: handshake.Health{Started: now, Failure: "the session was lost", Failed: now.Add(-time.Minute)}},
		Server{Name: "d-failing", Health: handshake.Health{Started: now.Add(-time.Hour), Failing: true, Failure: "exit status 3" + strings.Repeat(" long", 100), Failed: now.Add(-2 * time.Second)}},
		Server{Name: "h-locked", NeedsLogin: true, LoginCommand: "sse-server login https://x", Health: handshake.Health{Started: now, Failing: true, Failure: "401", Failed: now}},
		Server{Name: "e-starting", Totals: metrics.Totals{Sessions: 2, Idle: 1}},
		Server{Name: "f-warm", Totals: metrics.Totals{Sessions: 1, Idle: 1}},
		Server{Name: "g-known", Health: handshake.Health{Started: now.Add(-time.Hour), Known: true}},
	)
	code, body := get(t, h, "/status")
	var got []string
	for _, m := range regexp.MustCompile(`<span class="mark [a-z, ]+">([a-z, ]+)</span></td>\s*<th scope="row" data-label="Server"><a id="s-([a-z-]+)"`).FindAllStringSubmatch(body, -1) {
		got = append(got, m[2]+" "+m[1])
	}
	want := []string{"d-failing failing", "h-locked waiting for a login", "c-unstable unstable", "e-starting starting", "b-healthy healthy", "g-known cached", "f-warm standing by", "a-new not started"}
	if code != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("got %d and the servers %q, want %q", code, got, want)
	}
	head := body[:strings.Index(body, "<dl")]
	if !strings.Contains(head, "<h1 id=\"headline\">1 of 8 servers is failing</h1>") || !strings.Contains(head, "d-failing</a>") ||
		!strings.Contains(head, "<bdi>exit status 3 long") || !strings.Contains(head, "…</bdi> <small>2 s ago") || strings.Contains(head, "c-unstable") {
		t.Errorf("the headline does not name the failing server, its cause and the time:\n%s", head)
	}
}

// A cached server has one name, on this page and on those in the browser, and the documentation has the name of each
// state.
func TestStatesHaveOneName(t *testing.T) {
	cached := Server{Name: "docs", Health: handshake.Health{Started: time.Now(), Known: true}}
	_, body := get(t, serving(cached), "/status/servers/docs")
	ssetest.WantText(t, "page", body, ">docs is cached</h1>", "Memory answers its clients: it starts with the first call.")
	const root = "../../../"
	for file, form := range map[string]string{"docs/operations.md": "*%s*", "docs/reference/wire.md": "`%s`"} {
		text := readFile(t, root+file)
		for _, condition := range conditions {
			ssetest.WantText(t, file, text, fmt.Sprintf(form, condition))
		}
	}
	ssetest.WantText(t, "the glossary", readFile(t, root+"docs/glossary.md"), "**"+Cached+"**: ")
	for _, module := range []string{"servers.js", "members.js"} {
		ssetest.WantText(t, module, readFile(t, root+"internal/page/web/"+module), " "+Cached+": ")
	}
	ssetest.WantText(t, "head.js", readFile(t, root+"internal/page/web/head.js"), "`Cached: ${ofCached}`")
}

// readFile returns the text of a file.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	ssetest.Must(t, err)
	return string(text)
}

func TestHeadlines(t *testing.T) {
	now := time.Now()
	requests := metrics.Hour{{0, 1, 0}, {0, 2, 0}}
	if _, body := get(t, serving(Server{Hour: requests}), "/status"); !strings.Contains(body, "<title>3 requests in the last hour, at most 2 a minute") {
		t.Errorf("no requests in\n%s", body)
	}
	well, bad := handshake.Health{Started: now}, handshake.Health{Failing: true}
	for want, servers := range map[string][]Server{
		"There is no server":           nil,
		"The server is healthy":        {{Health: well}},
		"The server is not started":    {{}},
		"All 2 servers are healthy":    {{Name: "a", Health: well}, {Name: "b", Health: well}},
		"None of 2 servers is failing": {{Name: "a", Health: well}, {Name: "b"}},
		"2 of 2 servers are failing":   {{Name: "a", Health: bad}, {Name: "b", Health: bad}},
		"1 of 2 servers is failing":    {{Name: "a", Health: well}, {Name: "b", Health: bad}},
		"The server is draining":       {{Health: handshake.Health{Draining: true, Failing: true}}},
	} {
		if _, body := get(t, serving(servers...), "/status"); !strings.Contains(body, ">"+want+"</h1>") {
			t.Errorf("no headline %q in\n%s", want, body[:min(len(body), 1500)])
		}
	}
}

// The names that clients and servers give themselves are text, short, and cannot turn the text around
// them.
func TestHostileNamesStayText(t *testing.T) {
	evil := `"'><script>alert(1)</script><img src=x onerror=alert(2)>` + "\u202eabc\x00\x1b[31m" + strings.Repeat("W", 5000)
	c := conn("AAAAAAAA", evil, time.Now())
	c.UserAgent, c.Principal, c.ProtocolVersion, c.Remote = evil, evil, evil, "192.0.2.1"
	c.LastFailure = &connstate.Failure{Phase: evil, Reason: evil}
	s := Server{
		Name: "a", Upstream: "URL", Place: evil, Connections: []connstate.Snapshot{c},
		Health: handshake.Health{
			Failure: evil, Failed: time.Now(), Failing: true,
			Initialized: &handshake.Server{Name: evil, Version: evil, ProtocolVersion: evil},
		},
	}
	h := serving(s)
	for _, path := range []string{
		"/status", "/status/servers/a", "/status/connections/AAAAAAAA", "/status/connections/%3Cscript%3E", "/status/servers/%3Cscript%3E",
		"/status?q=%22%3E%3Cscript%3E&state=%3Cscript%3E&server=%3Cscript%3E&sort=%3Cscript%3E&page=%3Cscript%3E",
	} {
		_, body := get(t, h, path)
		rest := strings.Replace(body, `<script src="`, "", 1)
		for _, bad := range []string{"<script", "<img", "\u202e", "\x00", "\x1b", strings.Repeat("W", 1000)} {
			if strings.Contains(rest, bad) {
				t.Errorf("%s has %.20q", path, bad)
			}
		}
		if len(body) > 40<<10 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
}

// A page runs and loads only what comes from here, and has nothing inline.
func TestContentSecurityPolicy(t *testing.T) {
	h := serving(Server{Name: "a", Connections: []connstate.Snapshot{conn("AAAAAAAA", "c", time.Now())}})
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script>|"https?://`)
	for path, kind := range map[string]string{
		"/status": "text/html", "/status/servers/a": "text/html", "/status/connections/AAAAAAAA": "text/html", "/status/connections/none": "text/html",
		"/status/style.css": "text/css", "/status/live.js": "text/javascript",
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		header := rec.Header()
		if !strings.HasPrefix(header.Get("Content-Type"), kind) || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';") ||
			header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got the header %v", path, header)
		}
		if found := inline.FindString(rec.Body.String()); kind == "text/html" && found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}

// Links work wherever the routes are mounted.
func TestLinksAreRelative(t *testing.T) {
	h := http.StripPrefix("/admin", serving(Server{Name: "a", Connections: []connstate.Snapshot{conn("AAAAAAAA", "c", time.Now())}}))
	link := regexp.MustCompile(`(?:href|src|data-events)="([^"]*)"`)
	for _, path := range []string{"/admin/status", "/admin/status/servers/a", "/admin/status/connections/AAAAAAAA", "/admin/status/servers/none"} {
		_, body := get(t, h, path)
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			if strings.HasPrefix(m[1], "data:") || m[1][0] == '#' || strings.HasSuffix(m[1], "status/events") {
				continue
			}
			r := httptest.NewRequest(http.MethodGet, path, nil)
			to := r.URL.ResolveReference(mustParse(t, m[1]))
			if code, _ := get(t, h, to.String()); code != http.StatusOK {
				t.Errorf("%s: the link %s gives %d", path, m[1], code)
			}
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/admin/status/", nil))
	if to := rec.Header().Get("Location"); rec.Code != http.StatusMovedPermanently || to != "../status" {
		t.Errorf("/status/: got %d to %q", rec.Code, to)
	}
}

func TestSortAndFilter(t *testing.T) {
	now := time.Now()
	old, mid, young := conn("OLD", "zed", now.Add(-time.Hour)), conn("MID", "Claude", now.Add(-time.Minute)), conn("NEW", "cursor", now)
	old.RequestsDone, old.InFlight, old.Principal, old.Ready = 7, 3, "alice", old.Opened.Add(time.Second)
	mid.State, mid.Ready, mid.Client, mid.UserAgent = connstate.Failed, time.Time{}, nil, "python-httpx/0.28"
	mid.LastFailure, mid.RequestsFailed = &connstate.Failure{Phase: "request_creation", Reason: "start_failed", At: now}, 4
	young.Transport = connstate.TransportSSE
	h := serving(Server{Name: "docs", Connections: []connstate.Snapshot{old, young}}, Server{Name: "mail", Connections: []connstate.Snapshot{mid}})
	for query, want := range map[string]string{
		"":                              "MID NEW OLD", // failed first, then the youngest
		"sort=age":                      "OLD MID NEW",
		"sort=age&order=asc":            "NEW MID OLD",
		"sort=client":                   "NEW MID OLD",
		"sort=client&order=desc":        "OLD MID NEW",
		"sort=requests":                 "OLD NEW MID",
		"sort=handshake":                "OLD NEW MID",
		"sort=errors":                   "MID NEW OLD",
		"sort=flight":                   "OLD NEW MID",
		"sort=failure":                  "MID NEW OLD",
		"sort=server&order=desc":        "MID NEW OLD",
		"sort=transport":                "NEW MID OLD",
		"sort=id":                       "MID NEW OLD",
		"sort=principal&order=desc":     "OLD NEW MID",
		"sort=nonsense&page=-9":         "MID NEW OLD",
		"q=CURSOR":                      "NEW",
		"q=alice":                       "OLD",
		"q=httpx":                       "MID",
		"q=docs&sort=age":               "OLD NEW",
		"state=ready":                   "NEW OLD",
		"state=failed":                  "MID",
		"state=nonsense&sort=age":       "",
		"server=mail":                   "MID",
		"server=docs&state=failed":      "",
		"server=docs&q=zed&state=ready": "OLD",
	} {
		_, body := get(t, h, "/status?"+query)
		ssetest.Want(t, query, strings.Join(ids(body), " "), want)
	}
	if _, body := get(t, h, "/status/servers/docs?server=mail"); strings.Join(ids(body), " ") != "NEW OLD" {
		t.Errorf("the page of docs lists %q, want its own", ids(body))
	}
	// A header links to its order, and to the reverse if it is in use.
	_, body := get(t, h, "/status?q=c&sort=requests&page=3")
	ssetest.WantText(t, "page", body,
		`class="n" aria-sort="descending"><a id="sort-requests" href="?order=asc&amp;q=c&amp;sort=requests">`,
		`aria-sort="none"><a id="sort-client" href="?order=asc&amp;q=c&amp;sort=client">`)
}

// crowd returns a server with n connections.
func crowd(n int) Server {
	s := Server{Name: "docs"}
	for i := range n {
		s.Connections = append(s.Connections, conn(fmt.Sprintf("C%07d", i), "client", time.Unix(int64(i), 0)))
	}
	return s
}

// A page has the rows that it shows, however many there are.
func TestPages(t *testing.T) {
	h := serving(crowd(10_000))
	for query, want := range map[string][2]string{
		"sort=id":                 {"C0000000", "C0000049"},
		"sort=id&page=2":          {"C0000050", "C0000099"},
		"sort=id&page=200":        {"C0009950", "C0009999"},
		"sort=id&page=9999999999": {"C0009950", "C0009999"}, // the last that there is
	} {
		_, body := get(t, h, "/status?"+query)
		got := ids(body)
		if len(got) != perPage || got[0] != want[0] || got[perPage-1] != want[1] {
			t.Errorf("%s: got %d rows, %q, want %d from %s to %s", query, len(got), got, perPage, want[0], want[1])
		}
		if len(body) > 60<<10 {
			t.Errorf("%s: got %d bytes", query, len(body))
		}
	}
	_, body := get(t, h, "/status?q=client&page=7")
	ssetest.WantText(t, "page", body, `href="?page=6&amp;q=client" rel="prev"`, `href="?page=8&amp;q=client" rel="next"`, "page 7 of 200")
	many := make([]Server, 120)
	for i := range many {
		many[i] = Server{Name: fmt.Sprintf("s%03d", i), Health: handshake.Health{Failing: true, Failure: "x"}}
	}
	_, body = get(t, serving(many...), "/status?servers=2")
	if rows := strings.Count(body, `data-label="Health"`); rows != perPage || !strings.Contains(body, `id="s-s050"`) || strings.Count(body, `id="f-s`) != 5 {
		t.Errorf("got %d servers, want %d from s050, and 5 in the headline", rows, perPage)
	}
}

func TestPageOfAConnection(t *testing.T) {
	c := conn("AAAAAAAA", "Claude", time.Now().Add(-time.Hour))
	c.LastFailure, c.InFlight, c.RequestsDone, c.BytesIn = &connstate.Failure{Phase: "request_processing", Reason: "timeout", At: time.Now().Add(-time.Minute)}, 2, 1234, 1234567
	h := serving(Server{Connections: []connstate.Snapshot{c}, Tools: &multiplex.ToolList{Tools: 3}})
	_, body := get(t, h, "/status/connections/AAAAAAAA")
	ssetest.WantText(t, "page", body, "<bdi>Claude 1.0</bdi>", "20 ms", "request_processing: timeout, 1 min ago", "1234, 0 of them", "1234567 bytes", `href="../../status/servers/server"`)
	if code, body := get(t, h, "/status/connections/BBBBBBBB"); code != http.StatusNotFound || !strings.Contains(body, "connectionId=BBBBBBBB") {
		t.Errorf("one that is closed: got %d %s", code, body)
	}
	if code, _ := get(t, h, "/status/servers/server"); code != http.StatusOK {
		t.Errorf("the only server: got %d", code)
	}
}

// Viewers share one look at the servers a second, and nothing is kept for longer.
func TestViewersShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		h := New(func() ([]Server, []httpcheck.Replica, bool) { looks++; return nil, nil, true })
		for range 20 {
			for range 10 {
				get(t, h, "/status")
			}
			time.Sleep(100 * time.Millisecond)
		}
		ssetest.Want(t, "looks in 2 s", looks, 2)
	})
}

// stream is the response to an EventSource. A write blocks while it is stalled.
type stream struct {
	header  http.Header
	stalled bool

	mu   sync.Mutex // guards what follows
	text strings.Builder
	due  time.Time
}

func newStream() *stream { return &stream{header: http.Header{}} }

func (s *stream) Header() http.Header { return s.header }
func (s *stream) WriteHeader(int)     {}
func (s *stream) Flush()              {}
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stalled {
		time.Sleep(time.Until(s.due))
		return 0, context.DeadlineExceeded
	}
	return s.text.Write(p)
}
func (s *stream) SetReadDeadline(time.Time) error { return nil }
func (s *stream) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = at
	return nil
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *stream) changes() int {
	return strings.Count(s.String(), "event: message\ndata: changed\n\n")
}

// watch runs an EventSource until the returned function is called or the page ends it.
func watch(t *testing.T, h http.Handler, s *stream) (stop func(), ended <-chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(s, httptest.NewRequest(http.MethodGet, "/status/events", nil).WithContext(ctx))
	}()
	return cancel, done
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks, done, closed atomic.Int64
		h := New(func() ([]Server, []httpcheck.Replica, bool) {
			looks.Add(1)
			return []Server{{Name: "docs", Hour: metrics.Hour{59: {0, int(done.Load()), 0}}}}, nil, closed.Load() == 0
		})
		first, second := newStream(), newStream()
		stop, gone := watch(t, h, first)
		_, ended := watch(t, h, second)
		time.Sleep(5 * time.Second)
		if first.changes() != 1 { // it has not said what it shows
			t.Errorf("got %q, want one change", first)
		}
		for range 100 { // much changes
			done.Add(1)
			time.Sleep(100 * time.Millisecond)
		}
		if n := first.changes(); n < 4 || n > 7 {
			t.Errorf("got %d changes in 15 s, want one in 2 s while something changed", n)
		}
		if n := looks.Load(); n > 16 {
			t.Errorf("got %d looks in 15 s, want one a second", n)
		}
		before := first.changes()
		time.Sleep(20 * time.Second)
		if n := first.changes() - before; n > 2 {
			t.Errorf("got %d changes while nothing changed but the minute", n)
		}
		stop()
		<-gone
		ssetest.Want(t, "type", first.header.Get("Content-Type"), "text/event-stream")
		closed.Store(1) // shut down
		at := time.Now()
		if <-ended; time.Since(at) > updateEvery+lookAge {
			t.Errorf("the stream ended %v after the shutdown", time.Since(at))
		}
	})
}

// A browser that stays is served for watchTime, one that stalls until a write has taken too
// long, and no more than maxWatchers at a time.
func TestWatchersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(func() ([]Server, []httpcheck.Replica, bool) {
			return []Server{{Name: "docs", Hour: metrics.Hour{{int(time.Now().UnixNano())}}}}, nil, true
		})
		began := time.Now()
		_, stalled := watch(t, h, &stream{header: http.Header{}, stalled: true})
		<-stalled
		ssetest.Want(t, "one that stalls was served for", time.Since(began), httpanswer.DefaultTimeout)
		for range maxWatchers - 1 {
			stop, _ := watch(t, h, newStream())
			defer stop()
		}
		began = time.Now()
		s := newStream()
		_, ended := watch(t, h, s)
		synctest.Wait()
		if code, _ := get(t, h, "/status/events"); code != http.StatusServiceUnavailable {
			t.Errorf("one more: got %d, want 503", code)
		}
		<-ended
		if took := time.Since(began); took != watchTime || len(s.String()) > 40<<10 {
			t.Errorf("one that stays was served for %v and got %d bytes, want %v", took, len(s.String()), watchTime)
		}
	})
}

func TestDrawing(t *testing.T) {
	s := newSpark(metrics.Hour{0: {0, 1, 0}, 59: {7, 30, 0}}, metrics.Requests)
	if s.Kind != "requests" || s.Sum != 31 || s.Most != 30 || s.Path != "M1 32v-3M178 32v-32" {
		t.Errorf("got %+v", s)
	}
}

// A page that has views says that their requests are counted twice: else its sums look like more clients.
func TestDrawingsWithViews(t *testing.T) {
	const says = "A request through a view counts at the view, and again at the server that gets it."
	member := Server{Name: "a"}
	view := Server{Name: "team", Upstream: "view", Members: []compose.Report{{Name: "a"}}}
	for _, path := range []string{"/status", "/status/servers/a"} {
		for has, h := range map[bool]http.Handler{false: serving(member), true: serving(member, view)} {
			if _, body := get(t, h, path); strings.Contains(body, says) != has {
				t.Errorf("%s, with a view: %v\n%s", path, has, body)
			}
		}
	}
}

func mustParse(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(strings.ReplaceAll(s, "&amp;", "&"))
	ssetest.Must(t, err)
	return u
}

// A cluster has a table of its replicas, a gateway without one has none.
func TestReplicas(t *testing.T) {
	replicas := []httpcheck.Replica{{Name: "one"}, {Name: "two<b>", Connections: 7, Draining: true}, {Name: "three", Silent: true}}
	_, body := get(t, New(func() ([]Server, []httpcheck.Replica, bool) { return []Server{{}}, replicas, true }), "/status")
	ssetest.WantText(t, "page", body, "Replicas <small>3", "one</bdi> <small>this one", "two&lt;b&gt;</bdi></th>", "mark draining", ">7</td>", "mark silent")
	if _, body := get(t, serving(Server{}), "/status"); strings.Contains(body, "Replica") {
		t.Error("there are replicas without a cluster")
	}
}

package statuspage

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

const (
	// perPage is the rows of a page.
	perPage = 50
	// maxQuery bounds the text to look for, in bytes.
	maxQuery = 100
)

// serverRow is a server in the list and on its own page.
type serverRow struct {
	Server
	Label  string
	Health health
	States [4]int // connections by state
}

func newServerRow(l *look, s Server) serverRow {
	row := serverRow{Server: s, Label: s.label(), Health: s.health(l.at)}
	for i := range s.Connections {
		if state := int(s.Connections[i].State); state < len(row.States) {
			row.States[state]++
		}
	}
	return row
}

// byUrgency orders servers: those that need attention first, then by name.
func byUrgency(a, b serverRow) int {
	return cmp.Or(cmp.Compare(slices.Index(healths, a.Health), slices.Index(healths, b.Health)), cmp.Compare(a.Label, b.Label))
}

// overview is the first page.
type overview struct {
	head
	Health  health      // the worst of all servers; "" without any
	Failing []serverRow // the first of them
	Servers []serverRow
	Pages   pager
	States  [4]int
	Flight  int
	Hour    Hour
	List    list
}

// maxFailing bounds the servers that the headline names.
const maxFailing = 5

func newOverview(l *look, query url.Values) overview {
	var v overview
	rows, failed := make([]serverRow, len(l.servers)), 0
	for i, s := range l.servers {
		rows[i] = newServerRow(l, s)
		for state, n := range rows[i].States {
			v.States[state] += n
		}
		for j := range s.Connections {
			v.Flight += s.Connections[j].InFlight
		}
		v.Hour.add(s.Hour)
		if rows[i].Health == failing {
			failed++
		}
	}
	slices.SortFunc(rows, byUrgency)
	if len(rows) > 0 {
		v.Health = rows[0].Health
	}
	v.Failing = rows[:min(failed, maxFailing)]
	v.head = l.head("", headline(rows, failed), string(v.Health))
	v.Pages = newPager(query, "servers", len(rows))
	v.Servers = rows[v.Pages.From:v.Pages.To]
	v.List = newList(l, l.servers, query, "")
	return v
}

// headline says how servers are. rows are sorted, and the first failed of them are failing.
func headline(rows []serverRow, failed int) string {
	switch n := len(rows); {
	case n == 0:
		return "There is no server"
	case n == 1:
		return "The server is " + string(rows[0].Health)
	case failed == 1:
		return fmt.Sprintf("1 of %d servers is failing", n)
	case failed > 1:
		return fmt.Sprintf("%d of %d servers are failing", failed, n)
	case rows[0].Health == rows[n-1].Health:
		return fmt.Sprintf("All %d servers are %s", n, rows[0].Health)
	}
	return fmt.Sprintf("None of %d servers is failing", len(rows))
}

// serverView is the page of one server.
type serverView struct {
	head
	serverRow
	List list
}

func newServerView(l *look, s Server, query url.Values) serverView {
	query.Del("server")
	row := newServerRow(l, s)
	return serverView{
		head: l.head("../../", row.Label+" is "+string(row.Health), string(row.Health)), serverRow: row,
		List: newList(l, []Server{s}, query, "../../"),
	}
}

// connectionView is the page of one connection.
type connectionView struct {
	head
	connectionRow
	Root string
}

func newConnectionView(l *look, s Server, c connstate.Snapshot) connectionView {
	row := connectionRow{&c, s.Name, s.label(), "../../"}
	return connectionView{l.head("../../", "Connection "+c.ID+": "+c.State.String(), c.State.String()), row, row.Root}
}

// connectionRow is a connection in a list.
type connectionRow struct {
	*connstate.Snapshot
	Name, Label string // of the server
	Root        string
}

// ClientName returns what the client says of itself, or its user agent.
func (r connectionRow) ClientName() string {
	if r.Client != nil && r.Client.Name != "" {
		return strings.TrimSpace(r.Client.Name + " " + r.Client.Version)
	}
	return r.UserAgent
}

// HandshakeTime returns how long the connection waited for its first session, or for
// which it has waited.
func (r connectionRow) HandshakeTime() time.Duration {
	if r.Ready.IsZero() {
		return 0
	}
	return r.Ready.Sub(r.Opened)
}

// failureText returns the last failure in words; "" for none.
func failureText(f *connstate.Failure) string {
	if f == nil {
		return ""
	}
	return clip(strings.ReplaceAll(f.Phase+": "+f.Reason, "_", " "), 80)
}

// matches reports whether a text in lower case is in what the row shows.
func (r connectionRow) matches(lower string) bool {
	return contains(r.ID, lower) || contains(r.ClientName(), lower) || contains(r.UserAgent, lower) || contains(r.Name, lower) ||
		contains(r.Principal, lower) || contains(r.Remote, lower) || contains(string(r.Transport), lower) ||
		contains(failureText(r.LastFailure), lower)
}

// column is a column of the connections, with how it is sorted; compare is nil for one that
// is not.
type column struct {
	Key, Title string
	compare    func(a, b connectionRow) int
	Numbers    bool // which are sorted in descending order first
}

func text(of func(connectionRow) string) func(a, b connectionRow) int {
	return func(a, b connectionRow) int { return strings.Compare(strings.ToLower(of(a)), strings.ToLower(of(b))) }
}

func number[N cmp.Ordered](of func(connectionRow) N) func(a, b connectionRow) int {
	return func(a, b connectionRow) int { return cmp.Compare(of(a), of(b)) }
}

// columns are the columns of the connections. The first is the order without a choice.
var columns = []column{
	{"state", "State", number(func(r connectionRow) int { return stateRank[r.State] }), false},
	{"id", "Connection", text(func(r connectionRow) string { return r.ID }), false},
	{"client", "Client", text(connectionRow.ClientName), false},
	{"server", "Server", text(func(r connectionRow) string { return r.Name }), false},
	{"transport", "Transport", text(func(r connectionRow) string { return string(r.Transport) }), false},
	{"principal", "Principal", text(func(r connectionRow) string { return r.Principal }), false},
	{"handshake", "Handshake", number(connectionRow.HandshakeTime), true},
	{"flight", "In flight", number(func(r connectionRow) int { return r.InFlight }), true},
	{"requests", "Requests", number(func(r connectionRow) int64 { return r.RequestsDone }), true},
	{"errors", "Failed", number(func(r connectionRow) int64 { return r.RequestsFailed }), true},
	{"age", "Age", func(a, b connectionRow) int { return b.Opened.Compare(a.Opened) }, true},
	{"failure", "Last failure", number(func(r connectionRow) int64 { // the latest first
		if r.LastFailure == nil {
			return 0
		}
		return -r.LastFailure.At.UnixNano()
	}), false},
}

// stateRank orders states: those that need attention first.
var stateRank = map[connstate.State]int{
	connstate.Failed: 0, connstate.Initializing: 1, connstate.Draining: 2, connstate.Ready: 3, connstate.Closed: 4,
}

// states are those by which connections are filtered.
var states = []string{"failed", "initializing", "draining", "ready"}

// list is the connections of a page, as its query asks for them.
type list struct {
	At                  time.Time
	Text, State, Server string // the filter
	States, Servers     []string
	Filtered            bool
	All                 int // without the filter
	Headers             []header
	Rows                []connectionRow
	Pages               pager
}

// header is a column with the link that sorts by it.
type header struct {
	column
	Href string
	Sort string // "ascending", "descending" or "none"
}

func newList(l *look, servers []Server, query url.Values, root string) list {
	v := list{At: l.at, Text: clip(strings.TrimSpace(query.Get("q")), maxQuery), State: query.Get("state"), Server: query.Get("server"), States: states}
	if !slices.Contains(states, v.State) {
		v.State = ""
	}
	var rows []connectionRow
	lower, found := strings.ToLower(v.Text), false
	for i := range servers {
		s := &servers[i]
		if len(servers) > 1 {
			v.Servers = append(v.Servers, s.Name)
		}
		found = found || s.Name == v.Server
		v.All += len(s.Connections)
		if v.Server != "" && v.Server != s.Name {
			continue
		}
		for j := range s.Connections {
			row := connectionRow{&s.Connections[j], s.Name, s.label(), root}
			if (v.State == "" || v.State == row.State.String()) && (lower == "" || row.matches(lower)) {
				rows = append(rows, row)
			}
		}
	}
	slices.Sort(v.Servers)
	v.Filtered = v.Text != "" || v.State != "" || v.Server != ""
	v.sort(rows, query)
	v.Pages = newPager(query, "page", len(rows))
	v.Rows = rows[v.Pages.From:v.Pages.To]
	return v
}

// sort sorts all rows as the query asks, and sets the headers.
func (v *list) sort(rows []connectionRow, query url.Values) {
	i := max(0, slices.IndexFunc(columns, func(c column) bool { return c.Key == query.Get("sort") }))
	by := columns[i]
	descending := by.Numbers
	if order := query.Get("order"); order != "" {
		descending = order == "desc"
	}
	slices.SortFunc(rows, func(a, b connectionRow) int {
		order := by.compare(a, b)
		if descending {
			order = -order
		}
		return cmp.Or(order, b.Opened.Compare(a.Opened), cmp.Compare(a.ID, b.ID))
	})
	for j, c := range columns {
		h, order := header{column: c, Sort: "none"}, c.Numbers
		if i == j {
			h.Sort, order = "ascending", !descending
			if descending {
				h.Sort = "descending"
			}
		}
		name := "asc"
		if order {
			name = "desc"
		}
		h.Href = with(query, "sort", c.Key, "order", name, "page", "")
		v.Headers = append(v.Headers, h)
	}
}

// known are the parameters that links keep.
var known = []string{"q", "state", "server", "sort", "order", "page", "servers"}

// with returns a query with other values for some parameters, in pairs; "" removes one.
func with(query url.Values, pairs ...string) string {
	next := make(url.Values)
	for _, name := range known {
		if value := query.Get(name); value != "" {
			next.Set(name, clip(value, maxQuery))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		next.Set(pairs[i], pairs[i+1])
		if pairs[i+1] == "" {
			next.Del(pairs[i])
		}
	}
	return "?" + next.Encode()
}

// pager is a page of Total rows, those from From up to To.
type pager struct {
	Page, Pages, Total, From, To int
	Previous, Next               string // links; "" for none
}

// newPager returns the page that the parameter name asks for, the nearest that there is.
func newPager(query url.Values, name string, total int) pager {
	p := pager{Total: total, Pages: max(1, (total+perPage-1)/perPage)}
	asked, _ := strconv.Atoi(query.Get(name))
	p.Page = min(max(1, asked), p.Pages)
	p.From = (p.Page - 1) * perPage
	p.To = min(p.From+perPage, total)
	if p.Page > 1 {
		p.Previous = with(query, name, strconv.Itoa(p.Page-1))
	}
	if p.Page < p.Pages {
		p.Next = with(query, name, strconv.Itoa(p.Page+1))
	}
	return p
}

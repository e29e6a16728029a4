package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// perPage is the rows of a page.
const perPage = 50

// connection is a connection of a server, on a page below Root.
type connection struct {
	*connstate.Snapshot
	Of   *server
	Root string
	key  string // to sort by
}

// ClientName returns what the client says of itself, or its user agent.
func (c connection) ClientName() string {
	if c.Client != nil && c.Client.Name != "" {
		return strings.TrimSpace(c.Client.Name + " " + c.Client.Version)
	}
	return c.UserAgent
}

// HandshakeTime returns how long the connection waited for its first session.
func (c connection) HandshakeTime() time.Duration { return max(0, c.Ready.Sub(c.Opened)) }

// matches reports whether a text in lower case is in what a row shows.
func (c connection) matches(lower string) bool {
	return slices.ContainsFunc([]string{
		c.ID, c.ClientName(), c.UserAgent, c.Of.Label, c.Principal, c.Remote, string(c.Transport),
	}, func(s string) bool { return strings.Contains(strings.ToLower(s), lower) })
}

// column is a column of the connections.
type column struct {
	Name, Title string
	Numbers     bool                      // the largest come first
	by          func(c connection) string // what it is sorted by
	Sort        string                    // "ascending", "descending" or "none"
	Href        string                    // sorts by it
}

// columns are the columns of the connections. The first is the order without a choice.
var columns = []column{
	{Name: "state", Title: "State", by: func(c connection) string {
		return number(slices.Index([]connstate.State{connstate.Failed, connstate.Initializing, connstate.Draining,
			connstate.Ready, connstate.Resting}, c.State))
	}},
	{Name: "id", Title: "Connection", by: func(c connection) string { return c.ID }},
	{Name: "client", Title: "Client", by: connection.ClientName},
	{Name: "server", Title: "Server", by: func(c connection) string { return c.Of.Label }},
	{Name: "transport", Title: "Transport", by: func(c connection) string { return string(c.Transport) }},
	{Name: "principal", Title: "Principal", by: func(c connection) string { return c.Principal }},
	{Name: "handshake", Title: "Handshake", Numbers: true,
		by: func(c connection) string { return number(c.HandshakeTime()) }},
	{Name: "flight", Title: "In flight", Numbers: true, by: func(c connection) string { return number(c.InFlight) }},
	{Name: "requests", Title: "Requests", Numbers: true,
		by: func(c connection) string { return number(c.RequestsDone) }},
	{Name: "errors", Title: "Failed", Numbers: true, by: func(c connection) string { return number(c.RequestsFailed) }},
	{Name: "age", Title: "Age", Numbers: true,
		by: func(c connection) string { return number(math.MaxInt64 - c.Opened.UnixNano()) }},
	{Name: "failure", Title: "Last failure", by: func(c connection) string { // the latest first
		if c.LastFailure == nil {
			return number(int64(math.MaxInt64))
		}
		return number(math.MaxInt64 - c.LastFailure.At.UnixNano())
	}},
}

// number returns a text that is sorted as a number that is not negative.
func number[N ~int | ~int64](n N) string { return fmt.Sprintf("%019d", n) }

// list is the connections of a page, as its query asks for them.
type list struct {
	Text, State, Server string   // the filter
	Servers             []string // that it can name
	Columns             []column
	Rows                []connection
	pager
	All int // connections without the filter
}

func newList(servers []*server, query url.Values, root string) list {
	v := list{Text: strings.TrimSpace(query.Get("q")), State: query.Get("state"), Server: query.Get("server")}
	var rows []connection
	lower := strings.ToLower(v.Text)
	for _, s := range servers {
		v.Servers = append(v.Servers, s.Name)
		v.All += len(s.Connections)
		for i := range s.Connections {
			c := connection{Snapshot: &s.Connections[i], Of: s, Root: root}
			if (v.Server == "" || v.Server == s.Name) && (v.State == "" || v.State == c.State.String()) &&
				(lower == "" || c.matches(lower)) {
				rows = append(rows, c)
			}
		}
	}
	slices.Sort(v.Servers)
	v.sort(rows, query)
	v.pager = newPager(query, "page", len(rows))
	v.Rows = rows[v.From:v.To]
	return v
}

// sort sorts rows as the query asks, and sets the columns.
func (v *list) sort(rows []connection, query url.Values) {
	by := max(0, slices.IndexFunc(columns, func(c column) bool { return c.Name == query.Get("sort") }))
	descending := columns[by].Numbers
	if order := query.Get("order"); order != "" {
		descending = order == "desc"
	}
	v.Columns = slices.Clone(columns)
	for i := range v.Columns {
		c := &v.Columns[i]
		next := c.Numbers
		c.Sort = "none"
		if i == by {
			c.Sort, next = map[bool]string{false: "ascending", true: "descending"}[descending], !descending
		}
		c.Href = with(query, "sort", c.Name, "order", map[bool]string{false: "asc", true: "desc"}[next], "page", "")
	}
	for i := range rows {
		rows[i].key = strings.ToLower(columns[by].by(rows[i]))
	}
	slices.SortFunc(rows, func(a, b connection) int {
		order := strings.Compare(a.key, b.key)
		if descending {
			order = -order
		}
		return cmp.Or(order, b.Opened.Compare(a.Opened), strings.Compare(a.ID, b.ID))
	})
}

// with returns a query with other values for some parameters, in pairs; "" removes one.
func with(query url.Values, pairs ...string) string {
	next := maps.Clone(query)
	for i := 0; i < len(pairs); i += 2 {
		if next.Del(pairs[i]); pairs[i+1] != "" {
			next.Set(pairs[i], pairs[i+1])
		}
	}
	return "?" + next.Encode()
}

// pager is a page of Total rows, those from From up to To.
type pager struct {
	Page, Pages, Total, From, To int
	Previous, Next               string // links; "" for none
}

// newPager returns the page that a parameter asks for, the nearest that there is.
func newPager(query url.Values, name string, total int) pager {
	p := pager{Total: total, Pages: max(1, (total+perPage-1)/perPage)}
	asked, _ := strconv.Atoi(query.Get(name))
	p.Page = min(max(1, asked), p.Pages)
	p.From, p.To = (p.Page-1)*perPage, min(p.Page*perPage, total)
	if p.Page > 1 {
		p.Previous = with(query, name, strconv.Itoa(p.Page-1))
	}
	if p.Page < p.Pages {
		p.Next = with(query, name, strconv.Itoa(p.Page+1))
	}
	return p
}

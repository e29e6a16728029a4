package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/advice"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/forprogram"
)

// Tools prints the tools of each server and view that is chosen, what is left out of them and why, and what the lists
// cost. Lists come from memory; a server of which nothing is known is started. It returns the exit code: a failure if
// a server that can be asked does not say its tools. Signals are as for Try.
func (k *Check) Tools(c *config.Config, open func(*config.Server) (*gateway.Gateway, error),
	signals <-chan os.Signal) int {
	l := &lister{check: k, c: c, starts: newStarts(open), read: make(map[*config.Server]*reading)}
	return k.untilSignal(l.run, l.starts, signals)
}

// lister reads the lists of servers and prints them.
type lister struct {
	check  *Check
	c      *config.Config
	starts *starts

	mu   sync.Mutex // guards read while servers are asked
	read map[*config.Server]*reading
}

// run reads all lists, prints them, and returns the exit code.
func (l *lister) run(ctx context.Context) int {
	if err := l.readAll(ctx); err != nil {
		return exit.Refuse(l.check.Stderr, err)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(l.check.Stderr, "sse-server: stopped: not all servers have been asked")
		return exit.Failure
	}
	offers, err := l.offers()
	if err != nil {
		return exit.Refuse(l.check.Stderr, err)
	}
	if l.c.Tools.JSON {
		l.printJSON(offers)
	} else {
		for i, o := range offers {
			if i > 0 {
				fmt.Fprintln(l.check.Stdout)
			}
			l.print(o)
		}
		l.printUnlimited()
	}
	for _, r := range l.read {
		if r.isFailed() {
			return exit.Failure
		}
	}
	return exit.OK
}

// offers returns what clients get at each URL that is chosen: views come first.
func (l *lister) offers() (offers []*offer, err error) {
	servers, views := l.c.Chosen()
	for _, v := range views {
		o, err := offerOfView(v, func(s *config.Server) *reading { return l.read[s] })
		if err != nil {
			return nil, err
		}
		offers = append(offers, o)
	}
	for _, s := range servers {
		offers = append(offers, offerOf(l.read[s]))
	}
	return offers, nil
}

// readAll reads the lists of the servers, as many at a time as there are processors. The error says what is wrong with
// the configuration.
func (l *lister) readAll(ctx context.Context) error {
	limit := time.Duration(0)
	var names []string
	for _, s := range l.c.ChosenServers() {
		limit = max(limit, time.Duration(s.StartTimeout))
		names = append(names, l.c.Title(s))
	}
	shown := l.check.showWaiting(strings.Join(names, ", ")+": asking for tools", limit)
	defer shown()
	var asking errgroup.Group
	asking.SetLimit(runtime.GOMAXPROCS(0))
	for _, s := range l.c.ChosenServers() {
		asking.Go(func() error { // ends with ctx, or with the times of the gateway
			if ctx.Err() != nil {
				return nil
			}
			return l.readOne(ctx, s)
		})
	}
	return asking.Wait()
}

// readOne reads the lists of a server.
func (l *lister) readOne(ctx context.Context, s *config.Server) (err error) {
	r := &reading{server: s, name: l.c.Title(s)}
	if s.Remote().IsPerPrincipal() {
		r.err = errOfPersons
		l.put(r)
		return nil
	}
	gw, end, err := l.starts.openGateway(s, r.name)
	if err != nil {
		return err
	}
	defer end()
	began := time.Now()
	r.found, r.fromMemory = forprogram.Of(gw).Remembered()
	if !r.fromMemory {
		r.found, err = forprogram.Of(gw).CheckStart(ctx) // its timeouts bound it
		r.took = time.Since(began)
	}
	r.ahead, r.err = isAhead(s, gw), cmp.Or(err, r.found.NoTools)
	l.put(r)
	return nil
}

// put keeps what has been read of a server.
func (l *lister) put(r *reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read[r.server] = r
}

// print prints one offer for people.
func (l *lister) print(o *offer) {
	title := o.name
	if o.client != "" {
		title += ", for " + o.client
	}
	if !o.isUnknown() {
		l.say("%s: %s", title, o.summary())
		l.printTools(o)
	}
	for _, r := range o.servers {
		switch {
		case errors.Is(r.err, errOfPersons):
			l.say("%s: not asked: %v", r.name, r.err)
		case r.err != nil:
			l.say("%s: FAILED: %s", r.name, plaintext.Words(r.err.Error()))
			l.say("  what to do: %s", advice.For(r.server, r.err.Error()))
		case r.fromMemory:
			l.say("%s: from memory, it was not started", r.name)
		}
	}
	l.printLeft(o)
	if len(o.unmet) > 0 {
		l.say("rules that meet nothing, usually typing errors:")
	}
	for _, u := range o.unmet {
		l.say("  %s: %s%s", u.Member, u.Rule, ofServer(u.ofServer && o.isView))
	}
	if !o.isUnknown() {
		l.printCost(o)
	}
}

// say prints a line. What servers say in it cannot steer the terminal.
func (l *lister) say(format string, args ...any) {
	fmt.Fprintln(l.check.Stdout, plaintext.Visible(fmt.Sprintf(format, args...)))
}

// printTools prints the tools of an offer as a table.
func (l *lister) printTools(o *offer) {
	if len(o.tools) == 0 {
		return
	}
	rows := [][]string{{"name", "characters", "server", "own name"}}
	for _, tool := range o.tools {
		rows = append(rows, []string{tool.Name, fmt.Sprint(utf8.RuneCount(tool.Raw)), tool.Member, tool.Own})
	}
	if !o.isView {
		for i := range rows { // the server has them all, under the same names
			rows[i] = rows[i][:2]
		}
	}
	table(l.check.Stdout, rows)
}

// printLeft prints the tools that are left out, and the reasons.
func (l *lister) printLeft(o *offer) {
	if len(o.left) == 0 {
		return
	}
	l.say("left out:")
	var rows [][]string
	for _, left := range o.left {
		if o.isView {
			rows = append(rows, []string{left.Own, left.Member, left.Why() + ofServer(left.ofServer)})
		} else {
			rows = append(rows, []string{left.Own, left.Why()})
		}
	}
	table(l.check.Stdout, rows)
}

// printCost prints what a list costs, and how it goes together with the limits of clients.
func (l *lister) printCost(o *offer) {
	offered := o.toClients()
	c := costOf(o.listed, offered)
	l.say("the list: %s, %d of them in descriptions; about %s, one for %d characters",
		plaintext.Count(c.Characters, "character"), c.Descriptions, plaintext.Count(c.Tokens, "token"),
		charactersPerToken)
	var rows [][]string
	for _, f := range fitsOf(l.c.Tools.For, offered) {
		var uses []string
		for _, use := range f.Uses {
			uses = append(uses, fmt.Sprintf("%d of %d %s", use.Used, use.Limit, use.What))
		}
		name := f.Name
		for _, text := range append([]string{strings.Join(uses, ", ")}, f.Losses...) {
			if text != "" {
				rows = append(rows, []string{name, text})
				name = ""
			}
		}
	}
	table(l.check.Stdout, rows)
}

// printUnlimited names the clients of whose limits nothing is known.
func (l *lister) printUnlimited() {
	var names []string
	for _, f := range fitsOf(l.c.Tools.For, clients.Offer{}) {
		if len(f.Uses) == 0 {
			names = append(names, f.Name)
		}
	}
	if len(names) > 0 {
		fmt.Fprintln(l.check.Stdout)
		l.say("No limit for lists is known of %s.", strings.Join(names, ", "))
	}
}

// table prints rows with columns below each other.
func table(out io.Writer, rows [][]string) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = plaintext.Visible(cell)
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	_ = w.Flush() // as everything that is printed
}

// These are what --json prints. docs/reference/config.md describes them.
type (
	listsInJSON struct {
		CharactersPerToken int           `json:"charactersPerToken"`
		Offers             []offerInJSON `json:"offers"`
	}
	offerInJSON struct {
		Name    string         `json:"name"`
		Kind    string         `json:"kind"` // server or view
		For     string         `json:"for,omitempty"`
		Search  bool           `json:"search"` // the tools are found, not listed: cost and clients are of three others
		Servers []serverInJSON `json:"servers"`
		Tools   []toolInJSON   `json:"tools"`
		Left    []leftInJSON   `json:"left"`
		Unmet   []unmetInJSON  `json:"unmet"`
		Cost    cost           `json:"cost"`
		Clients []fit          `json:"clients"`
	}
	serverInJSON struct {
		Name       string `json:"name"`
		Tools      int    `json:"tools"` // that it lists itself
		FromMemory bool   `json:"fromMemory"`
		Error      string `json:"error,omitempty"`
	}
	toolInJSON struct {
		Name       string `json:"name"`
		Server     string `json:"server"`
		Own        string `json:"own"`
		Characters int    `json:"characters"`
	}
	leftInJSON struct {
		Name   string `json:"name,omitempty"` // empty: a rule has left it out before it got one
		Server string `json:"server"`
		Own    string `json:"own"`
		Reason string `json:"reason"`
		Rule   string `json:"rule,omitempty"`
		Of     string `json:"of"` // the rule: server or view
	}
	unmetInJSON struct {
		Server string `json:"server"`
		Rule   string `json:"rule"`
		Of     string `json:"of"`
	}
)

// kindOf returns the word of JSON for a server or a view.
func kindOf(isServer bool) string {
	if isServer {
		return "server"
	}
	return "view"
}

// printJSON prints offers for programs.
func (l *lister) printJSON(offers []*offer) {
	all := listsInJSON{charactersPerToken, []offerInJSON{}}
	for _, o := range offers {
		offered := o.toClients()
		one := offerInJSON{
			Name: o.name, Kind: kindOf(!o.isView), For: o.client, Search: o.searches,
			Servers: []serverInJSON{}, Tools: []toolInJSON{},
			Left: []leftInJSON{}, Unmet: []unmetInJSON{}, Cost: costOf(o.listed, offered),
			Clients: fitsOf(l.c.Tools.For, offered),
		}
		for _, r := range o.servers {
			s := serverInJSON{Name: r.name, Tools: len(r.found.Tools), FromMemory: r.fromMemory}
			if r.err != nil {
				s.Error = plaintext.Words(r.err.Error())
			}
			one.Servers = append(one.Servers, s)
		}
		for _, tool := range o.tools {
			one.Tools = append(one.Tools, toolInJSON{tool.Name, tool.Member, tool.Own, utf8.RuneCount(tool.Raw)})
		}
		for _, left := range o.left {
			one.Left = append(one.Left, leftInJSON{left.Name, left.Member, left.Own, string(left.Reason), left.By,
				kindOf(left.ofServer)})
		}
		for _, u := range o.unmet {
			one.Unmet = append(one.Unmet, unmetInJSON{u.Member, u.Rule, kindOf(u.ofServer)})
		}
		all.Offers = append(all.Offers, one)
	}
	data, _ := json.MarshalIndent(all, "", "  ") // never fails
	fmt.Fprintf(l.check.Stdout, "%s\n", data)
}

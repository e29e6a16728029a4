package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/tools/internal/issuer"
)

const (
	// slowPerson is how long a person takes to log in who looks for a password.
	slowPerson = 45 * time.Second
	// hasTime is how long a client waits for its tools while its person logs in.
	hasTime = 90 * time.Second
	// lookEvery is how often somebody looks for a new tab, or for new tools.
	lookEvery = 100 * time.Millisecond
)

// happening brings a program into a case, and says in a few words what happened.
type happening func(context.Context, *desk) (string, error)

// loginCases are the rows of the table: what people report most of a login in front of a remote server.
var loginCases = []struct {
	name    string
	happens happening
	races   bool // it may end otherwise each time
}{
	{"three programs start together, and nobody is logged in", threeAtOnce, true},
	{"the host stops the program that has opened the tab, and starts another one", hostStops, true},
	{"the port of the redirect is taken", portIsTaken, false},
	{"the person takes 45 s to log in", personIsSlow, false},
	{"the issuer registers no clients", noRegistration, false},
	{"the issuer has forgotten the client and the login", clientIsForgotten, false},
	{"the access token ends during a session", tokenEnds, false},
	{"the access token ends, and five programs start together", fiveRefresh, true},
	{"the issuer ends the login during a session", loginEnds, false},
	{"the server forgets its sessions", serverForgets, false},
}

// compareLogins prints what happens with sse-server and mcp-remote in front of a server that wants a login, as a table
// in Markdown.
func (a *arguments) compareLogins(ctx context.Context, w io.Writer) error {
	if a.Peers == "" {
		return errors.New("--mode logins needs --peers")
	}
	undo, err := actAsBrowser()
	if err != nil {
		return err
	}
	defer undo()
	peers := []bridge{{"sse-server stdio --url", a.oursOnStdio}, {"mcp-remote", a.mcpRemote}}
	var text strings.Builder
	fmt.Fprintf(&text, "| | %s | %s |\n|---|---|---|\n", peers[0].name, peers[1].name)
	for _, one := range loginCases {
		fmt.Fprintf(&text, "| %s", one.name)
		for _, p := range peers {
			rounds := 1
			if one.races {
				rounds = a.Rounds
			}
			cell, err := a.rounds(ctx, rounds, p, one.happens)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", p.name, one.name, err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %s\n", p.name, one.name, cell)
			fmt.Fprintf(&text, " | %s", cell)
		}
		text.WriteString(" |\n")
	}
	_, err = io.WriteString(w, text.String())
	return err
}

// bridge is a program that clients start in front of a URL.
type bridge struct {
	name    string
	command func(url string) []string
}

// rounds brings a program into a case so many times, and says what happened, with how often if not always the same.
func (a *arguments) rounds(ctx context.Context, rounds int, p bridge, happens happening) (string, error) {
	count, order := map[string]int{}, []string(nil)
	for range rounds {
		cell, err := a.atDesk(ctx, p, happens)
		if err != nil {
			return "", err
		}
		if count[cell] == 0 {
			order = append(order, cell)
		}
		count[cell]++
	}
	if len(order) == 1 {
		if rounds > 1 {
			order[0] += fmt.Sprintf(", %d of %d times", rounds, rounds)
		}
		return order[0], nil
	}
	for n, cell := range order {
		order[n] = fmt.Sprintf("%d of %d times: %s", count[cell], rounds, cell)
	}
	return strings.Join(order, "; "), nil
}

// actAsBrowser has programs give addresses to this one: their browser writes them to a file of their home.
func actAsBrowser() (undo func(), err error) {
	dir, err := os.MkdirTemp("", "compare-browser-")
	if err != nil {
		return nil, err
	}
	browser := filepath.Join(dir, "browser")
	return func() { _ = os.RemoveAll(dir) }, errors.Join(
		os.WriteFile(browser, []byte("#!/bin/sh\nprintf '%s\\n' \"$1\" >>\"$HOME/tabs\"\n"), 0o700),
		os.Setenv("BROWSER", browser),
		os.Unsetenv("DISPLAY"), os.Unsetenv("WAYLAND_DISPLAY"), // with these, xdg-open takes another browser
	)
}

// desk is a person with an empty home, a browser, and programs in front of a server that wants a login.
type desk struct {
	bridge

	issuer  *issuer.Issuer
	home    string
	timeout time.Duration

	mu     sync.Mutex // guards what follows
	takes  time.Duration
	tabs   []string
	failed int // tabs that have ended at an error
	people sync.WaitGroup
}

// atDesk brings a program into a case, and says what happened.
func (a *arguments) atDesk(ctx context.Context, p bridge, happens happening) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	home, err := os.MkdirTemp(cache, "compare-") // no other user can write above it: sse-server keeps no login there
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	served, err := issuer.Start(newEcho())
	if err != nil {
		return "", err
	}
	defer served.Close()
	ctx, cancel := context.WithCancel(ctx)
	d := &desk{bridge: p, issuer: served, home: home, timeout: a.Timeout}
	watched := make(chan struct{})
	go func() { // ends with ctx
		defer close(watched)
		d.watch(ctx)
	}()
	cell, err := happens(ctx, d)
	cancel()
	<-watched
	d.people.Wait()
	return cell, err
}

// start starts a program for a client.
func (d *desk) start() client { return newStdioClient(d.command(d.issuer.URL+"/mcp"), d.home) }

// watch opens each address that a program gives to the browser.
func (d *desk) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		data, _ := os.ReadFile(filepath.Join(d.home, "tabs")) // not there yet
		lines := strings.Split(string(data), "\n")
		d.mu.Lock()
		for n := len(d.tabs); n < len(lines)-1; n++ { // the last line is not whole
			d.tabs = append(d.tabs, lines[n])
			takes := d.takes
			d.people.Go(func() { d.logIn(ctx, lines[n], takes) })
		}
		d.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// logIn is a tab in which a person logs in after a while.
func (d *desk) logIn(ctx context.Context, address string, takes time.Duration) {
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}, Timeout: peerWait}
	var wentTo string
	browser.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if wentTo == "" && strings.HasPrefix(r.URL.String(), d.issuer.URL+"/authorize") {
			wentTo = r.URL.String()
			return http.ErrUseLastResponse // the page of the issuer, on which the person takes the time
		}
		return nil
	}
	open := func(at string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return err
		}
		resp, err := browser.Do(request)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= http.StatusBadRequest {
			return errors.New(resp.Status)
		}
		return nil
	}
	var err error
	if !strings.HasPrefix(address, d.issuer.URL+"/authorize") { // an address of this machine that leads there
		err, address = open(address), wentTo
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return
	}
	if err == nil && address != "" {
		wentTo = address
		err = open(address)
	}
	if err != nil {
		d.mu.Lock()
		d.failed++
		d.mu.Unlock()
	}
}

// personTakes is how long the person takes to log in in tabs that open from now on.
func (d *desk) personTakes(takes time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takes = takes
}

// opened returns the tabs.
func (d *desk) opened() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.tabs...)
}

// counts says how many tabs were opened, and how many logins were made.
func (d *desk) counts() string {
	text := plural(len(d.opened()), "tab") + ", " + plural(d.issuer.Saw().Logins, "login")
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed > 0 {
		text += ", " + plural(d.failed, "tab") + " with an error at the end"
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// hasTools waits until a client has the tools of the server, and calls one.
func hasTools(ctx context.Context, c client, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := openAndList(ctx, c, limit); err != nil {
		return err
	}
	return callsATool(ctx, c, limit)
}

// callsATool waits until an open session has the tools of the server, and calls one.
func callsATool(ctx context.Context, c client, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		tools, err := c.ask(ctx, "tools/list", "{}")
		if err != nil {
			return err
		}
		if bytes.Contains(tools, []byte(`"echo"`)) {
			return echoes(ctx, c, limit)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return errors.New("no tools of the server")
		}
	}
}

// all has some programs started together, and says how many of their clients have the tools.
func (d *desk) all(ctx context.Context, programs int) string {
	got := make(chan error, programs)
	for range programs {
		go func() { // ends with its client
			c := d.start()
			defer c.close()
			got <- hasTools(ctx, c, hasTime)
		}()
	}
	with, why := 0, ""
	for range programs {
		if err := <-got; err == nil {
			with++
		} else if why == "" {
			why = " (" + short(err) + ")"
		}
	}
	if programs == 1 && with == 1 {
		return "it has the tools"
	}
	return fmt.Sprintf("%d of %d have the tools%s", with, programs, why)
}

func threeAtOnce(ctx context.Context, d *desk) (string, error) {
	text := d.all(ctx, 3)
	return text + "; " + d.counts(), nil
}

// hostStops ends the first program a second after its tab, in which the person logs in two seconds later.
func hostStops(ctx context.Context, d *desk) (string, error) {
	d.personTakes(3 * time.Second)
	first := d.start()
	go func() { _ = openAndList(ctx, first, hasTime) }() // ends with the program
	if err := d.awaitTab(ctx); err != nil {
		first.close()
		return "", err
	}
	time.Sleep(time.Second) // the host is patient for that long
	first.close()
	text := d.all(ctx, 1)
	return text + "; " + d.counts(), nil
}

// awaitTab waits for the first tab.
func (d *desk) awaitTab(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for len(d.opened()) == 0 {
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return errors.New("no tab was opened")
		}
	}
	return nil
}

// portIsTaken takes the port at which the program has waited for the browser, and starts it anew with an empty home.
func portIsTaken(ctx context.Context, d *desk) (string, error) {
	d.personTakes(time.Hour)
	first := d.start()
	go func() { _ = openAndList(ctx, first, hasTime) }() // ends with the program
	err := d.awaitTab(ctx)
	first.close()
	if err != nil {
		return "", err
	}
	at, err := url.Parse(d.opened()[0])
	if err == nil && at.Query().Has("redirect_uri") {
		at, err = url.Parse(at.Query().Get("redirect_uri"))
	}
	if err != nil {
		return "", err
	}
	taken, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", at.Port()))
	if err != nil {
		return "", err
	}
	defer taken.Close()
	entries, err := os.ReadDir(d.home)
	for _, entry := range entries {
		if entry.Name() != "tabs" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.home, entry.Name())))
		}
	}
	if err != nil {
		return "", err
	}
	d.personTakes(0)
	return d.all(ctx, 1), nil
}

// personIsSlow says too whether a client has the answer to initialize meanwhile: most give a server a minute for that.
func personIsSlow(ctx context.Context, d *desk) (string, error) {
	d.personTakes(slowPerson)
	c := d.start()
	defer c.close()
	if err := openAndList(ctx, c, hasTime); err != nil {
		return "`initialize`: " + short(err), nil
	}
	text := "`initialize` is answered at once"
	if d.issuer.Saw().Logins > 0 {
		text = "`initialize` is answered after the login"
	}
	if err := callsATool(ctx, c, hasTime); err != nil {
		return text + ", and then: " + short(err), nil
	}
	return text + ", and a call after the login; " + plural(len(d.opened()), "tab"), nil
}

// noRegistration says what a client gets.
func noRegistration(ctx context.Context, d *desk) (string, error) {
	d.issuer.RegisterNobody()
	c := d.start()
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	if err := openAndList(ctx, c, d.timeout); err != nil {
		return "`initialize`: " + short(err), nil
	}
	return "a tool that says: " + answerOf(c.ask(ctx, "tools/call", `{"name":"login","arguments":{}}`)), nil
}

// answerOf is the text of an answer to a call, or its error.
func answerOf(result json.RawMessage, err error) string {
	var m struct{ Content []struct{ Text string } }
	if err == nil && (json.Unmarshal(result, &m) != nil || len(m.Content) == 0) {
		err = errors.New("no text")
	}
	if err != nil {
		return short(err)
	}
	return short(errors.New(m.Content[0].Text))
}

// logInFirst has a client log in, and call a tool. The client stays.
func (d *desk) logInFirst(ctx context.Context) (client, error) {
	c := d.start()
	if err := hasTools(ctx, c, hasTime); err != nil {
		c.close()
		return nil, err
	}
	d.issuer.Saw()
	return c, nil
}

func clientIsForgotten(ctx context.Context, d *desk) (string, error) {
	c, err := d.logInFirst(ctx)
	if err != nil {
		return "", err
	}
	c.close()
	d.issuer.EndLogins()
	d.issuer.ForgetClients()
	text := d.all(ctx, 1)
	return text + "; " + plural(len(d.opened())-1, "tab"), nil
}

func tokenEnds(ctx context.Context, d *desk) (string, error) {
	return d.during(ctx, d.issuer.EndTokens)
}

func loginEnds(ctx context.Context, d *desk) (string, error) {
	return d.during(ctx, d.issuer.EndLogins)
}

func serverForgets(ctx context.Context, d *desk) (string, error) {
	return d.during(ctx, func() { d.issuer.Serve(newEcho()) })
}

// during has something happen while a client is connected, and says what its next calls get.
func (d *desk) during(ctx context.Context, happens func()) (string, error) {
	c, err := d.logInFirst(ctx)
	if err != nil {
		return "", err
	}
	defer c.close()
	happens()
	for calls := range 3 {
		err = echoes(ctx, c, d.timeout)
		if err == nil && calls == 0 {
			return "the next call is answered" + d.since(), nil
		}
		if err == nil {
			return fmt.Sprintf("%s without an answer, then answered%s", plural(calls, "call"), d.since()), nil
		}
	}
	return "three calls fail: " + short(err) + d.since(), nil
}

// since says what the person and the issuer had to do after the first login.
func (d *desk) since() string {
	text := "; " + plural(len(d.opened())-1, "tab")
	switch refreshes := d.issuer.Saw().Refreshes; refreshes {
	case 0:
		return text
	case 1:
		return text + ", 1 refresh"
	default:
		return fmt.Sprintf("%s, %d refreshes", text, refreshes)
	}
}

// fiveRefresh has five programs find the same token that has ended.
func fiveRefresh(ctx context.Context, d *desk) (string, error) {
	c, err := d.logInFirst(ctx)
	if err != nil {
		return "", err
	}
	c.close()
	d.issuer.EndTokens()
	text := d.all(ctx, 5)
	return text + d.since(), nil
}

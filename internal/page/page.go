// Package page serves the page that people see who open the URL of an MCP server in a browser: what
// the server is, how each client gets it, and its tools to try.
//
// The page is files alone. Its script is an ordinary MCP client of the URL that it came from, so all
// that it does passes the checks, limits, sessions and audit of any client: this package knows no
// server, opens no connection and starts no process.
//
//	GET /mcp, Accept: text/html   page.html, with what the script needs to know in a block of JSON
//	GET /mcp?page=script.js       the modules of web/, as one
//	GET /mcp?page=style.css
//	GET /mcp?page=state.json      how the server is, as a State: the one file that its caller makes
//
// The files are parameters of the page's own URL because a single path has no other, and because a
// proxy may have renamed the path. That is why the modules are joined: an import cannot be relative
// to a query.
package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
)

// Options say what the page is of.
type Options struct {
	// Name is what people call the server; empty: what it calls itself.
	Name string
	// Transports are those that the URL speaks, as in gateway.Options.
	Transports []string
	// AutoInitialize says that the gateway initializes connections itself.
	AutoInitialize bool
	// Login is how the page gets tokens; nil: it asks for one.
	Login *Login
	// Prefix is the path below which the page is. While IsListed reports true, the root lists this server among
	// others, and the page links to it; nil: never.
	Prefix   string
	IsListed func() bool
}

// needsSession reports whether a client has to open a session before its first request.
func (o Options) needsSession() bool {
	return !o.AutoInitialize || !slices.Contains(o.Transports, "streamable")
}

// Login is a public client at an issuer, and what its tokens are for.
type Login struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	Resource string `json:"resource"`
	Scope    string `json:"scope"`
}

// Page is an http.Handler for the page of one server. It is safe for concurrent use. Its caller checks
// the requests, and gives it those of browsers and those for which IsFile reports true.
type Page struct {
	opts   Options
	about  func() template.JS // made for the first browser that comes: most servers have none
	policy string
}

// New returns the page of a server. It fails if the issuer of a login is not a URL.
func New(opts Options) (*Page, error) {
	allowed := policy
	if opts.Login != nil {
		issuer, err := url.Parse(opts.Login.Issuer)
		if err != nil || issuer.Host == "" || strings.ContainsAny(issuer.Host, " ;,'\"") {
			return nil, fmt.Errorf("page: the issuer %q is not a URL", opts.Login.Issuer)
		}
		const self = "connect-src 'self'"
		allowed = strings.Replace(policy, self, self+" "+issuer.Scheme+"://"+issuer.Host, 1)
	}
	return &Page{opts, sync.OnceValue(opts.about), allowed}, nil
}

// about is what the script learns from the page, beside its URL.
type about struct {
	Name           string   `json:"name"`
	Transports     []string `json:"transports"`
	AutoInitialize bool     `json:"autoInitialize"`
	NeedsSession   bool     `json:"needsSession"`
	Clients        []limit  `json:"clients"`
	Pastes         []paste  `json:"pastes"`
	Login          *Login   `json:"login,omitempty"`
}

// about returns what the script learns. json.Marshal escapes <, > and &.
func (o Options) about() template.JS {
	data, _ := json.Marshal(about{ // texts, numbers and truths, so there is no error
		o.Name, o.Transports, o.AutoInitialize, o.needsSession(), limits(), pastes(o.variant()), o.Login,
	})
	return template.JS(data)
}

// limit is what a client does not take of a server's tools.
type limit struct {
	Title        string   `json:"title"`
	Tools        int      `json:"tools,omitempty"`
	Descriptions int      `json:"descriptions,omitempty"`
	Over         string   `json:"over,omitempty"`
	Description  int      `json:"description,omitempty"`
	NameLength   int      `json:"nameLength,omitempty"`
	Front        string   `json:"front,omitempty"`
	LongNames    string   `json:"longNames,omitempty"`
	Keywords     []string `json:"keywords,omitempty"`
	Schemas      string   `json:"schemas,omitempty"`
}

func limits() (all []limit) {
	for _, c := range clients.All {
		if c.Tools+c.Descriptions+c.Description+c.NameLength+len(c.Keywords) > 0 {
			all = append(all, limit{c.Title, c.Tools, c.Descriptions, c.Over, c.Description, c.NameLength,
				c.Front, c.LongNames, c.Keywords, c.Schemas})
		}
	}
	return all
}

// The script replaces these by the URL and the name of the server in what people paste. Neither
// is changed by the quotes of a shell or of JSON.
const (
	urlPlace  = "@URL@"
	namePlace = "@NAME@"
)

// urlPlaceOf is urlPlace where there are several URLs.
func urlPlaceOf(i int) string { return fmt.Sprintf("@URL%d@", i) }

// variant says what of a server the texts for clients depend on: bits.
type variant int

const (
	sseAlone     variant = 1 << iota // it is served over HTTP+SSE alone
	needsSession                     // a client has to open a session before its first request
)

func (o Options) variant() (v variant) {
	if !slices.Contains(o.Transports, "streamable") {
		v |= sseAlone
	}
	if o.needsSession() {
		v |= needsSession
	}
	return v
}

// server returns a server as texts for clients have it.
func (v variant) server(name, url string, token, issuer bool) clients.Server {
	return clients.Server{Name: name, URL: url, SSE: v&sseAlone != 0, NeedsSession: v&needsSession != 0, Token: token,
		Issuer: issuer}
}

// paste is what people paste into a client that needs no token, and into one that does.
type paste struct {
	Title        string  `json:"title"`
	Where        string  `json:"where"`
	LogsIn       bool    `json:"logsIn,omitempty"`
	AboutProgram string  `json:"aboutProgram,omitempty"`
	Lack         string  `json:"lack,omitempty"`
	Open         version `json:"open"`
	Token        version `json:"token"`
}

type version struct {
	Text       string           `json:"text"`
	AboutToken string           `json:"aboutToken,omitempty"`
	Install    *clients.Install `json:"install,omitempty"`
}

func pastes(v variant) (all []paste) {
	server := v.server(namePlace, urlPlace, false, false)
	for _, c := range clients.WithEntry() {
		e := c.Entry
		one := paste{
			Title: c.Title, Where: e.Where, LogsIn: e.LogsIn,
			AboutProgram: e.AboutProgram(server), Lack: e.Lack(server),
		}
		for _, v := range []*version{&one.Open, &one.Token} {
			server.Token = v == &one.Token
			v.Text = e.Text([]clients.Server{server})
			v.AboutToken = e.AboutToken([]clients.Server{server})
			if install, has := e.InstallOf(server); has {
				v.Install = &install
			}
		}
		all = append(all, one)
	}
	return all
}

// The files of the page, as its parameter names them.
const (
	fileParam  = "page"
	scriptJS   = "script.js"
	styleCSS   = "style.css"
	serversJS  = "servers.js" // of the list of all
	serversCSS = "servers.css"
)

// IsFile reports whether a request is for a file of the page.
func IsFile(r *http.Request) bool {
	if r.URL.RawQuery == "" {
		return false
	}
	switch r.URL.Query().Get(fileParam) {
	case scriptJS, styleCSS, serversJS, serversCSS:
		return true
	}
	return false
}

// ServeHTTP serves the page, or a file of it.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeader(w.Header(), r, p.policy)
	if IsFile(r) {
		serveFile(w, r, r.URL.Query().Get(fileParam))
		return
	}
	listed := ""
	if p.opts.IsListed != nil && p.opts.IsListed() {
		listed = p.opts.Prefix
	}
	render(w, r, "page.html", struct {
		About    template.JS
		IsLinked bool
		Listed   string
	}{p.about(), isLinked(r), listed})
}

// isLinked reports whether another site has led the browser here. Over plain HTTP to another machine a
// browser says so in Referer alone, if at all.
func isLinked(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "cross-site", "same-site": // another port is the same site
		return true
	case "":
		from, err := url.Parse(r.Referer())
		return err == nil && from.Host != "" && !strings.EqualFold(from.Host, r.Host)
	}
	return false
}

// Link is a server in the list of all.
type Link struct {
	// Name is what people call the server, and Path the path of its URL, from the root.
	Name, Path string
	// IsView says that it is a view of servers.
	IsView bool
	// Page is its page.
	Page *Page
}

// Paste returns which of the texts for clients fit the server: State.Paste.
func (p *Page) Paste() int { return int(p.opts.variant()) }

// ServeList serves the list of servers at the root, with a link to the page of each. The script makes cards of it, with
// what the state of all says. Its caller checks the request.
func ServeList(w http.ResponseWriter, r *http.Request, servers []Link) {
	setHeader(w.Header(), r, policy)
	if IsFile(r) {
		serveFile(w, r, r.URL.Query().Get(fileParam))
		return
	}
	texts := make(map[int][]paste)
	for _, one := range servers {
		if one.Page != nil {
			texts[one.Page.Paste()] = pastes(one.Page.opts.variant())
		}
	}
	about, _ := json.Marshal(map[string]any{"pastes": texts}) // as in Options.about
	render(w, r, "servers.html", struct {
		About   template.JS
		Heading string
		Servers []Link
	}{template.JS(about), heading(servers), servers})
}

// heading says how many servers and views a list has, as headingOf of the script does.
func heading(all []Link) string {
	if len(all) == 1 {
		return "The MCP server"
	}
	views := 0
	for _, one := range all {
		if one.IsView {
			views++
		}
	}
	var parts []string
	for _, part := range []struct {
		n    int
		noun string
	}{{len(all) - views, "MCP server"}, {views, "view"}} {
		switch part.n {
		case 0:
		case 1:
			parts = append(parts, "1 "+part.noun)
		default:
			parts = append(parts, fmt.Sprintf("%d %ss", part.n, part.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// With policy, a browser takes scripts and styles from here alone and runs nothing inline, sends to
// nobody else but an issuer, and shows images and sounds only if the script has made them of a message. It
// makes no script of a text: the one policy that it may have is that of check.js, for the worker.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src data: blob:; media-src data: blob:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types worker"

func setHeader(header http.Header, r *http.Request, policy string) {
	header.Set("Content-Security-Policy", policy)
	// A page that opens this one cannot reach its window. Over plain HTTP to another machine a browser ignores the
	// header and logs an error. There it sends no Sec-Fetch headers (Fetch Metadata, section 2); some old browsers
	// never send them.
	if r.TLS != nil || r.Header.Get("Sec-Fetch-Mode") != "" {
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
	}
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache") // a browser asks whether it has changed
}

//go:embed web/*.html web/*.css web/*.js
var files embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.ParseFS(files, "web/*.html"))
})

func render(w http.ResponseWriter, r *http.Request, name string, data any) {
	var body bytes.Buffer
	if err := templates().ExecuteTemplate(&body, name, data); err != nil {
		http.Error(w, "the page is broken: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	httpanswer.WriteBody(w, r, http.StatusOK, body.Bytes())
}

// file is one that browsers keep until its tag changes.
type file struct {
	kind, tag string
	data      []byte
}

// served are the files by their names.
var served = sync.OnceValue(func() map[string]file {
	all := make(map[string]file)
	for name, data := range map[string][]byte{scriptJS: Script(), serversJS: ServersScript()} {
		all[name] = file{"text/javascript; charset=utf-8", tag(data), data}
	}
	for _, name := range []string{styleCSS, serversCSS} {
		all[name] = file{"text/css; charset=utf-8", tag(read(name)), read(name)}
	}
	return all
})

func tag(data []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(data) // never fails
	return fmt.Sprintf(`"%x"`, h.Sum64())
}

func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	f := served()[name]
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("ETag", f.tag)
	http.ServeContent(httpanswer.Bound(w, r), r, "", time.Time{}, bytes.NewReader(f.data))
}

func read(name string) []byte {
	data, err := files.ReadFile("web/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return data
}

// modules are those of the script: each one imports only from those before it.
var modules = []string{
	"dom.js", "states.js", "json.js", "events.js", "wire.js", "transport.js", "session.js", "login.js",
	"jsonschema.js", "schema.js", "check.js", "secrets.js", "form.js",
	"list.js", "result.js", "connect.js", "token.js", "serverlogin.js", "limits.js", "head.js", "calls.js",
	"tools.js", "prompts.js", "resources.js", "elicit.js", "logs.js", "dock.js",
	"members.js", "main.js",
}

var (
	importLine = regexp.MustCompile(`(?m)^import .* from '\./[a-z]+\.js';\n`)
	exportWord = regexp.MustCompile(`(?m)^export `)
)

// Script returns the modules joined as one: without the imports from one another, and without exports.
// So no two modules may have the same name at their top, imports have a line each, and rename nothing.
func Script() []byte { return join(modules) }

// serversModules are those of the script of the list of all servers.
var serversModules = []string{"dom.js", "states.js", "connect.js", "token.js", "serverlogin.js", "servers.js"}

// ServersScript is Script for the list of all servers.
func ServersScript() []byte { return join(serversModules) }

func join(modules []string) []byte {
	var all strings.Builder
	for _, name := range modules {
		text := exportWord.ReplaceAllString(importLine.ReplaceAllString(string(read(name)), ""), "")
		fmt.Fprintf(&all, "// %s\n%s\n", name, text)
	}
	return []byte(all.String())
}

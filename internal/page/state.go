package page

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// stateJSON is the one file of a page that says how its server is.
const stateJSON = "state.json"

// State is how a server or view is, as far as that is known without asking it. All texts are of bounded length. A
// field is missing if it is not known.
type State struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description,omitempty"` // of the configuration, else its instructions
	// State is healthy, cached (memory answers, and a call starts it), standing by, starting, not started, unstable,
	// failing, waiting for a login or draining; of a view also partly failing. In the list of all it is locked where
	// the visitor may know no more than the name.
	State     string   `json:"state"`
	View      bool     `json:"view,omitempty"`
	Tools     *int     `json:"tools,omitempty"`
	Prompts   *int     `json:"prompts,omitempty"`
	Resources *int     `json:"resources,omitempty"`
	Failure   *Failure `json:"failure,omitempty"` // while the state is unstable or failing
	Members   []Member `json:"members,omitempty"` // of a view: those that the visitor may use
	// LoginCommand is what a person types to log in at the server, if that waits for it and the visitor may know.
	LoginCommand string `json:"loginCommand,omitempty"`
	LogsInHere   bool   `json:"logsInHere,omitempty"` // the page may begin that login: see IsLogin
	// List has the tools that are known. Omitted says how many more there are.
	List    []Tool `json:"list,omitempty"`
	Omitted int    `json:"omitted,omitempty"`
	// Warnings say what is probably a mistake in the rules: one that meets nothing, or a tool that is left out although
	// no rule says so. OmittedWarnings says how many more there are.
	Warnings        []string `json:"warnings,omitempty"`
	OmittedWarnings int      `json:"omittedWarnings,omitempty"`

	// The rest is in the list of all servers alone.

	Path   string `json:"path,omitempty"`   // of its URL, from the root
	Token  bool   `json:"token,omitempty"`  // clients need a token
	LogsIn bool   `json:"logsIn,omitempty"` // clients that can log in get it by themselves
	Paste  int    `json:"paste,omitempty"`  // which of the texts for clients fit
}

// Failure is why a server does not start, or was lost, as far as the visitor may see that.
type Failure struct {
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"` // as in the errors that clients get
	Remedy  string `json:"remedy,omitempty"`
	At      int64  `json:"at,omitempty"` // in milliseconds since 1970
}

// Member is a server of a view. Its state is that of a server, or late: a list has waited for it in vain.
type Member struct {
	Name    string   `json:"name"`
	State   string   `json:"state"`
	Tools   *int     `json:"tools,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Tool is a tool, as clients are told of it, in short.
type Tool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Member      string `json:"member,omitempty"` // of a view: where it comes from
	Own         string `json:"own,omitempty"`    // its name there, if that is another one
}

// Landing is how all servers are that a visitor may know of, for the list of all.
type Landing struct {
	Servers []State `json:"servers"`
	Omitted int     `json:"omitted,omitempty"` // servers
	All     *Paste  `json:"all,omitempty"`     // for the client that the visitor has chosen
}

// Paste is what people paste into a client for all servers. A URL in it is the place @URL0@, with the number of the
// server in the list.
type Paste struct {
	Client       string `json:"client"`
	Text         string `json:"text"`
	AboutToken   string `json:"aboutToken,omitempty"`
	AboutProgram string `json:"aboutProgram,omitempty"`
}

// The bounds of a State, in characters and in numbers.
const (
	maxName        = 128
	maxTitle       = 200
	maxDescription = 300
	maxSentence    = 160 // of the description of a tool
	maxWords       = 1000
	maxListed      = 500  // tools of a server
	maxFindable    = 4000 // tools of all servers
	maxServers     = 200
	maxWarnings    = 20 // of a server
	maxOnCard      = 3  // of them in the list of all servers
)

// NewFailure returns a failure with texts of bounded length.
func NewFailure(message, reason, remedy string, at int64) *Failure {
	return &Failure{cut(message, maxWords), reason, cut(remedy, maxWords), at}
}

// Describe sets the texts of the state: what the configuration says, else what the server says of itself.
func (s *State) Describe(name, title, version, description string) {
	s.Name, s.Title, s.Version = cut(name, maxName), cut(title, maxTitle), cut(version, maxName)
	s.Description = cut(strings.TrimSpace(description), maxDescription)
}

// AddWarning adds a warning about the rules.
func (s *State) AddWarning(text string) {
	if len(s.Warnings) >= maxWarnings {
		s.OmittedWarnings++
		return
	}
	s.Warnings = append(s.Warnings, cut(text, maxDescription))
}

// AddTool adds a tool of the list. member is empty if the server is no view.
func (s *State) AddTool(tool json.RawMessage, name, member, own string) {
	if len(s.List) >= maxListed {
		s.Omitted++
		return
	}
	text := func(most int, path ...string) string {
		text, _ := rawjson.MemberText(tool, path...)
		return cut(text, most)
	}
	one := Tool{Name: cut(name, maxName), Title: text(maxTitle, "title"), Description: text(maxSentence, "description"),
		Member: member}
	if one.Title == "" {
		one.Title = text(maxTitle, "annotations", "title")
	}
	if own != name {
		one.Own = cut(own, maxName)
	}
	s.List = append(s.List, one)
}

// cut returns at most so many characters of a text.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(string([]rune(text)[:most])+"…", "\uFFFD")
}

// IsState reports whether a request is for the state of a server, or of all.
func IsState(r *http.Request) bool {
	return r.URL.RawQuery != "" && r.URL.Query().Get(fileParam) == stateJSON
}

// IsLogin reports whether a request of a page begins a login at the server.
func IsLogin(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.RawQuery != "" && r.URL.Query().Get(fileParam) == "login"
}

// LoggedIn returns the address at which the browser comes back to a page from a login that its button has begun, and
// the word in it. A page to which another site has led opens no session by itself, but with the word, which ServeLink
// tells the tab of the button alone: the issuer never sees it, and no link of a stranger can have it.
func LoggedIn(page string) (back, word string) {
	word = rand.Text()
	return page + "#logged-in=" + word, word
}

// ServeLink serves the address at which the browser goes on, and the word with which it comes back.
func ServeLink(w http.ResponseWriter, r *http.Request, link, word string) {
	setHeader(w.Header(), r, policy)
	w.Header().Set("Cache-Control", "no-store")
	httpanswer.WriteValue(w, r, http.StatusOK, map[string]string{"link": link, "word": word})
}

// ServeState serves the state of a server. Its caller has checked the request as one of a client.
func ServeState(w http.ResponseWriter, r *http.Request, s *State) { serveJSON(w, r, s) }

// ServeLanding serves how all servers are. Its caller has checked the request, and for each server that is not locked
// that the visitor may use it. The servers whose numbers are in pasted are those that a client needs to reach all.
func ServeLanding(w http.ResponseWriter, r *http.Request, l *Landing, pasted []int) {
	if more := len(l.Servers) - maxServers; more > 0 {
		l.Servers, l.Omitted = l.Servers[:maxServers], more
	}
	left := maxFindable
	for i := range l.Servers {
		s := &l.Servers[i]
		if over := len(s.List) - left; over > 0 {
			s.List, s.Omitted = s.List[:left], s.Omitted+over
		}
		left -= len(s.List)
		if over := len(s.Warnings) - maxOnCard; over > 0 {
			s.Warnings, s.OmittedWarnings = s.Warnings[:maxOnCard], s.OmittedWarnings+over
		}
	}
	l.All = l.pasteAll(r.URL.Query().Get("client"), pasted)
	serveJSON(w, r, l)
}

// pasteAll returns what people paste into a client for those servers; nil if there is nothing.
func (l *Landing) pasteAll(title string, pasted []int) *Paste {
	var servers []clients.Server
	for _, i := range pasted {
		if i < len(l.Servers) {
			s := &l.Servers[i]
			servers = append(servers, variant(s.Paste).server(s.Name, urlPlaceOf(i), s.Token, s.LogsIn))
		}
	}
	for _, c := range clients.WithEntry() {
		if c.Title != title || len(servers) == 0 {
			continue
		}
		text := c.Entry.Text(servers)
		if text == "" {
			return nil
		}
		return &Paste{c.Title, text, c.Entry.AboutToken(servers), c.Entry.AboutProgram(servers[0])}
	}
	return nil
}

// serveJSON serves a value as JSON. A script that has it, as its tag says, gets it no more.
func serveJSON(w http.ResponseWriter, r *http.Request, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "the state has no JSON form: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header, current := w.Header(), tag(data)
	setHeader(header, r, policy)
	header.Set("Cache-Control", "no-store") // it is for this visitor alone
	header.Set("ETag", current)
	if r.Header.Get("If-None-Match") == current {
		header.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	httpanswer.WriteJSON(w, r, http.StatusOK, data)
}

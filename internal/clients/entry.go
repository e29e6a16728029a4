package clients

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/plainjson"
)

// Server is a server at a URL, as a client is told of it.
type Server struct {
	// Name has letters, digits, _ and - alone.
	Name, URL string
	SSE       bool // it is served over HTTP+SSE alone
	// NeedsSession says that it answers no single request, because a client has to open a session first.
	NeedsSession bool
	Token        bool // it wants a bearer token, for which texts have the word TOKEN
	Issuer       bool // clients that can log in at its issuer get the token themselves
	// Program is the path of sse-server, for clients that only start programs; empty: people put it in.
	Program string
	// ProgramArgs come before all others, if Program is one that starts sse-server, such as npx.
	ProgramArgs []string
	// Args are the arguments with which a client starts Program and gets the server from it. Then it has no URL.
	Args []string
	// Call is what curl asks for: the members of a request after its id; empty: its tools.
	Call string
}

func (s Server) kind() string {
	if s.SSE {
		return "sse"
	}
	return "http"
}

// headers returns the headers of an entry, with what the client replaces by the token.
func (s Server) headers(token string) map[string]string {
	if !s.Token {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + token}
}

// flag returns the option of a command with the token in its place.
func (s Server) flag(name string) string {
	if !s.Token {
		return ""
	}
	return " " + name + ` "Authorization: Bearer ` + inPlace.form + `"`
}

// Entry is what people give to a client so that it uses a server: the entry of its configuration, a command or
// a program, and a link that installs it. The banner, sse-server connect and the page print from it.
type Entry struct {
	// Where ends the sentence "Paste into".
	Where string
	// Files are those of its configuration, of the project or below the home directory, which ~ is. Connect writes to
	// them.
	Files []string
	// Others are files of the user in which it has entries too, and Projects is the member of them that has entries of
	// single projects, by their folders; empty: they have none.
	Others   []string
	Projects string
	// Settings are files, beside those, in which rules may name tools of servers.
	Settings []string
	// Key is the member of these files that has the entries, and Format how it has them. Empty: no file is known.
	Key    string
	Format Format
	// LogsIn says that it gets a token from an issuer by itself.
	LogsIn bool
	// Approves says that it asks its user about each server that a file of a project has.
	Approves bool

	// single says why there is nothing to paste for a server that needs a session. It is empty but for a client
	// that sends one request over Streamable HTTP, without a session.
	single string
	// starts says that its entry starts a program.
	starts bool
	// token is how the token gets into the file, and pasted how it gets into a text that is not the file.
	token, pasted token
	// member returns the entry of a server in the file, as JSON. token is the form of the token in its header.
	member func(s Server, token string) json.RawMessage
	// program returns the entry, as JSON, of a server that the client starts, if it has more than command and args.
	program func(s Server) json.RawMessage
	// inputs is what the file has beside the entries if they need a token: VS Code asks for it.
	inputs json.RawMessage
	// text returns what people paste, if that is not the file in JSON.
	text func([]Server) string
	// install returns a link that installs a server. token is the form of the token in its header.
	install func(s Server, token string) Install
}

// The members of files that have the entries of clients: of most, of VS Code, Zed, opencode and Codex.
const (
	MostKey     = "mcpServers"
	VSCodeKey   = "servers"
	ZedKey      = "context_servers"
	OpencodeKey = "mcp"
	CodexKey    = "mcp_servers"
)

// Format is how a file has its entries.
type Format int

// The formats of files.
const (
	JSON Format = iota // an object below the key, perhaps with comments
	TOML               // tables below the key
	YAML               // a list below the key, whose items have a name
)

// token is a way in which a client gets the token of the gateway.
type token struct {
	form  string // what the client replaces by the token in a header; empty if there is no header to write
	about string // says what people do about it
}

var (
	inPlace      = token{"TOKEN", "Put a token of the gateway in the place of TOKEN."}
	askedFor     = token{"${input:token}", "The client asks for a token of the gateway."}
	inItsEntry   = token{"${TOKEN}", inPlace.about} // which gives the program that it starts a variable
	fromVariable = token{"", "Set the environment variable TOKEN to a token of the gateway."}
)

// asVariable is a variable of the environment in the form that a client has for it.
func asVariable(form string) token { return token{form, fromVariable.about} }

// Install is a link that installs a server: Link, and then Config, encoded for a URL.
type Install struct {
	Link   string `json:"link"`
	Config string `json:"config"`
	// Base64 says that Config is in Base64 before that.
	Base64 bool `json:"base64,omitempty"`
}

// String returns the whole link.
func (i Install) String() string {
	config := i.Config
	if i.Base64 {
		config = base64.StdEncoding.EncodeToString([]byte(config))
	}
	return i.Link + strings.ReplaceAll(url.QueryEscape(config), "+", "%20")
}

// needs returns a server without a token if the client gets one by itself.
func (e *Entry) needs(s Server) Server {
	s.Token = s.Token && !(s.Issuer && e.LogsIn)
	return s
}

// JSON returns the entry of a server in the client's file in JSON; nil if it has none.
func (e *Entry) JSON(s Server) json.RawMessage {
	switch {
	case e.member == nil:
		return nil
	case len(s.Args) > 0 && e.program != nil:
		return e.program(s)
	case len(s.Args) > 0:
		return run(s)
	}
	return e.member(e.needs(s), e.token.form)
}

// Inputs returns the member inputs that the client's file has for these servers; nil if it has none.
func (e *Entry) Inputs(servers []Server) json.RawMessage {
	if slices.ContainsFunc(servers, func(s Server) bool { return e.needs(s).Token }) {
		return e.inputs
	}
	return nil
}

// Document returns the client's file in JSON with these servers alone; nil if it has none.
func (e *Entry) Document(servers []Server) json.RawMessage {
	if e.member == nil {
		return nil
	}
	var entries []any
	for _, s := range servers {
		entries = append(entries, s.Name, e.JSON(s))
	}
	return object("inputs", e.Inputs(servers), e.Key, object(entries...))
}

// Lack says why there is nothing to paste for a server; empty if there is something.
func (e *Entry) Lack(s Server) string {
	if s.NeedsSession && !s.SSE {
		return e.single
	}
	return ""
}

// Text returns what people paste: commands, a program, or the file with these servers alone. It is empty if
// there is nothing to paste for them.
func (e *Entry) Text(servers []Server) string {
	if e.text != nil {
		var all []Server
		for _, s := range servers {
			if e.Lack(s) == "" {
				all = append(all, e.needs(s))
			}
		}
		return e.text(all)
	}
	var b bytes.Buffer
	_ = json.Indent(&b, e.Document(servers), "", "  ") // it is JSON
	return b.String()
}

// InstallOf returns the link that installs a server; false if the client has none.
func (e *Entry) InstallOf(s Server) (Install, bool) {
	if e.install == nil {
		return Install{}, false
	}
	return e.install(e.needs(s), e.token.form), true
}

// programPlace is what people replace by the path of sse-server, where that is not known.
const programPlace = "/PATH/TO/sse-server"

// AboutProgram says what to do about the path of sse-server in the text of a server; empty if the text has
// no place for one.
func (e *Entry) AboutProgram(s Server) string {
	if !e.starts || s.Program != "" {
		return ""
	}
	return "Put the path of the program sse-server on the machine of the client in the place of " + programPlace + "."
}

// AboutToken says what to do about the token in the text of these servers; empty if none of them needs one.
func (e *Entry) AboutToken(servers []Server) string {
	if e.text == nil {
		return e.AboutTokenInFile(servers)
	}
	return e.about(servers, e.pasted)
}

// AboutTokenInFile says the same of the entries in the client's file.
func (e *Entry) AboutTokenInFile(servers []Server) string { return e.about(servers, e.token) }

func (e *Entry) about(servers []Server, t token) string {
	if slices.ContainsFunc(servers, func(s Server) bool { return e.needs(s).Token && e.Lack(s) == "" }) {
		return t.about
	}
	return ""
}

// object makes an object of names and values, in this order, without those that are empty.
func object(pairs ...any) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i < len(pairs); i += 2 {
		data := jsonText(pairs[i+1])
		if slices.Contains([]string{"null", `""`}, data) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", jsonText(pairs[i]), data)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func jsonText(value any) string {
	data, _ := plainjson.Encode(value) // texts, lists and mappings of them, and JSON
	return string(data)
}

// lines returns a text for each server, one below the other.
func lines(one func(Server) string) func([]Server) string {
	return func(servers []Server) string {
		var all []string
		for _, s := range servers {
			all = append(all, one(s))
		}
		return strings.Join(all, "\n")
	}
}

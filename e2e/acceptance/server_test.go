package acceptance

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// scriptVariable names the script of the MCP server that the test binary is as a child of a
// gateway.
const scriptVariable = "ACCEPTANCE_SERVER"

// script is how a server behaves.
type script struct {
	// name returns the member id of the answer to a request, "" for none.
	name func(method, id string) string
	// initialize answers initialize, or does not; nil: at once, with a result.
	initialize func(s *scripted, r request)
	// tools returns the result of tools/list; nil: it has none.
	tools func(s *scripted) string
}

var scripts = map[string]script{
	"names answers":    {name: named},
	"names by strings": {name: func(_, id string) string { return `"id":"` + id + `",` }},
	"names none":       {name: func(_, id string) string { return "" }},
	"names null":       {name: func(_, id string) string { return `"id":null,` }},

	"names initialize alone": {name: afterInitialize(func(string) string { return "" })},
	"foreign numbers":        {name: func(_, id string) string { return `"id":1000` + id + `,` }},
	"foreign texts":          {name: func(_, id string) string { return `"id":"answer-` + id + `",` }},
	"foreign but initialize": {name: afterInitialize(func(id string) string { return `"id":1000` + id + `,` })},
	"always 1":               {name: func(string, string) string { return `"id":1,` }},
	"counts from 0":          {name: func(_, id string) string { n, _ := strconv.Atoi(id); return fmt.Sprintf(`"id":%d,`, n-1) }},
	"floats":                 {name: func(_, id string) string { return `"id":` + id + `.0,` }},

	"initializes late":     {name: named, initialize: initializeLate},
	"never initializes":    {name: named, initialize: func(*scripted, request) {}},
	"refuses":              {name: named, initialize: refuse},
	"introduces at length": {name: named, initialize: introduceAtLength},
	"loads":                {name: named, initialize: load},
	"tells all":            {name: named, initialize: initializeLate, tools: tellAll},
}

func named(_, id string) string { return `"id":` + id + `,` }

// afterInitialize names the answer to initialize rightly, and all others in another way.
func afterInitialize(name func(id string) string) func(method, id string) string {
	return func(method, id string) string {
		if method == "initialize" {
			return named(method, id)
		}
		return name(id)
	}
}

// fileVariable names the file that the script "initializes late" waits for.
const fileVariable = "ACCEPTANCE_FILE"

func initializeLate(s *scripted, r request) {
	go func() { // ends when the file is there, or with the process
		awaitFile(os.Getenv(fileVariable))
		s.introduce(r, "")
	}()
}

// tellAll makes a tool of each thing that may choose what a server says: a variable, a file in its directory, one in a
// directory of PATH, the account that DATABASE_URL names, what a client has asked it to read, what no client of MCP
// has to say in initialize, and what an evil one calls itself.
func tellAll(s *scripted) string {
	inFolder, _ := os.ReadFile("tool") // most folders have none
	inPath := ""
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if found, err := os.ReadFile(filepath.Join(dir, "tool")); err == nil {
			inPath = string(found)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf(`{"tools":[{"name":"host-%s"},{"name":"folder-%s"},{"name":"read-%s"},{"name":"unknown-%s"},{"name":"path-%s"},{"name":"account-%s"},{"name":"to-%s"}]}`,
		os.Getenv("SSH_HOST"), inFolder, s.read, s.unknown, inPath, os.Getenv("DATABASE_URL"), s.evil)
}

func refuse(s *scripted, r request) {
	s.reply(r, `"error":{"code":-32600,"message":"this server is closed today"}`)
}

// introduceAtLength answers with more than the buffers between the gateway and a client hold.
func introduceAtLength(s *scripted, r request) { s.introduce(r, strings.Repeat("x", 6<<20)) }

// load answers after words in the same line.
func load(s *scripted, r request) {
	s.mu.Lock()
	fmt.Fprint(s.out, "loading 100%\rready> ")
	s.mu.Unlock()
	s.introduce(r, "")
}

// scripted is an MCP server on stdio that follows a script. Its tools are:
//
//	echo {text}             answers the text
//	meet {text, of, place}  waits until so many calls of it are there; then they are answered
//	                        in the order of their places, or in which they came
//	wait {text, file}       answers when the file is there, and makes another one with "-answered" at its name;
//	                        with a progress token it reports 1 at once, and 2 before it answers
//	hang                    never answers
//	die                     ends the process
//	print {text}            writes the text to stdout, as it is, and a new line; then it answers
//	most                    answers how many requests the server had at a time, at most, since
//	                        the last call of most
type scripted struct {
	script

	mu      sync.Mutex
	out     io.Writer // guarded by mu, as all that follows
	meeting []request
	pending int    // requests that are not answered
	most    int    // of them, since the last call of most
	read    string // the resource that was read last
	unknown string // what initialize had beside what MCP knows
	evil    string // the name of the client, if it is evil
}

// request is one of the gateway's.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string `json:"name"`
		ProtocolVersion string `json:"protocolVersion"`
		URI             string `json:"uri"`
		Unknown         string `json:"unknown"`
		ClientInfo      struct {
			Name string `json:"name"`
		} `json:"clientInfo"`
		Meta struct {
			Unknown       string          `json:"unknown"`
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Arguments struct {
			Text  string `json:"text"`
			Of    int    `json:"of"`
			Place int    `json:"place"`
			File  string `json:"file"`
		} `json:"arguments"`
	} `json:"params"`
}

// serveScript serves until the input ends, and returns the exit code.
func serveScript(name string, in io.Reader, out io.Writer) int {
	s := &scripted{script: scripts[name], out: out}
	if s.name == nil {
		fmt.Fprintf(os.Stderr, "there is no script %q\n", name)
		return 2
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s\n", err, lines.Bytes())
			return 2
		}
		if r.ID != nil && r.Method != "" {
			s.serve(r)
		}
	}
	return 0
}

func (s *scripted) serve(r request) {
	s.mu.Lock()
	s.pending++
	s.most = max(s.most, s.pending)
	s.mu.Unlock()
	switch {
	case r.Method == "initialize" && s.initialize != nil:
		s.mu.Lock()
		s.unknown = r.Params.Unknown + r.Params.Meta.Unknown
		if s.evil = ""; strings.Contains(r.Params.ClientInfo.Name, "evil") {
			s.evil = r.Params.ClientInfo.Name
		}
		s.mu.Unlock()
		s.initialize(s, r)
	case r.Method == "initialize":
		s.introduce(r, "")
	case r.Method == "tools/call":
		s.call(r)
	case r.Method == "tools/list" && s.tools != nil:
		s.reply(r, `"result":`+s.tools(s))
	default:
		s.mu.Lock()
		s.read = cmp.Or(r.Params.URI, s.read)
		s.mu.Unlock()
		s.reply(r, `"result":{}`)
	}
}

// introduce answers initialize.
func (s *scripted) introduce(r request, instructions string) {
	s.reply(r, fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":%t}},"serverInfo":{"name":"scripted","version":"1"},"instructions":"%s"}`,
		r.Params.ProtocolVersion, s.tools != nil, instructions))
}

func (s *scripted) call(r request) {
	switch r.Params.Name {
	case "echo":
		s.answerText(r, r.Params.Arguments.Text)
	case "meet":
		s.meet(r)
	case "wait":
		s.report(r, 1)
		go func() { // ends when the file is there, or with the process
			awaitFile(r.Params.Arguments.File)
			s.report(r, 2)
			s.answerText(r, r.Params.Arguments.Text)
			_ = os.WriteFile(r.Params.Arguments.File+"-answered", nil, 0o600) // who waits for it says so
		}()
	case "most":
		s.mu.Lock()
		most := s.most
		s.most = 0
		s.mu.Unlock()
		s.answerText(r, fmt.Sprint(most))
	case "print":
		s.mu.Lock()
		fmt.Fprintln(s.out, r.Params.Arguments.Text)
		s.mu.Unlock()
		s.answerText(r, "printed")
	case "die":
		os.Exit(1)
	}
}

// meet lets a call wait for the others. The last one has all answered.
func (s *scripted) meet(r request) {
	s.meeting = append(s.meeting, r)
	if len(s.meeting) < r.Params.Arguments.Of {
		return
	}
	slices.SortStableFunc(s.meeting, func(a, b request) int { return cmp.Compare(a.Params.Arguments.Place, b.Params.Arguments.Place) })
	for _, each := range s.meeting {
		s.answerText(each, each.Params.Arguments.Text)
	}
	s.meeting = nil
}

// awaitFile waits until there is such a file.
func awaitFile(name string) {
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if _, err := os.Stat(name); err == nil {
			return
		}
	}
}

func (s *scripted) answerText(r request, text string) {
	quoted, _ := json.Marshal(text) // a string has a JSON form
	s.reply(r, `"result":{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

// report reports progress of a request that has a token.
func (s *scripted) report(r request, progress int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Params.Meta.ProgressToken != nil {
		fmt.Fprintf(s.out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`+"\n", r.Params.Meta.ProgressToken, progress)
	}
}

// reply answers a request with the member result or error.
func (s *scripted) reply(r request, member string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	fmt.Fprintf(s.out, `{"jsonrpc":"2.0",%s%s}`+"\n", s.name(r.Method, string(r.ID)), member)
}

package acceptance

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// scriptVariable names the script of the MCP server that the test binary is as a child of a
// gateway.
const scriptVariable = "ACCEPTANCE_SERVER"

// scripts are how servers name their answers: each returns the member id of the answer to a
// request, "" for none.
var scripts = map[string]func(method, id string) string{
	"names answers":    func(_, id string) string { return `"id":` + id + `,` },
	"names by strings": func(_, id string) string { return `"id":"` + id + `",` },
	"names none":       func(_, id string) string { return "" },
	"names null":       func(_, id string) string { return `"id":null,` },
}

// scripted is an MCP server on stdio that follows a script. Its tools are:
//
//	echo {text}             answers the text
//	meet {text, of, place}  waits until so many calls of it are there; then they are answered
//	                        in the order of their places, or in which they came
//	wait {text, file}       answers when the file is there
//	hang                    never answers
//	die                     ends the process
//	most                    answers how many requests the server had at a time, at most, since
//	                        the last call of most
type scripted struct {
	name func(method, id string) string

	mu      sync.Mutex
	out     io.Writer // guarded by mu, as all that follows
	meeting []request
	pending int // requests that are not answered
	most    int // of them, since the last call of most
}

// request is one of the gateway's.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name            string `json:"name"`
		ProtocolVersion string `json:"protocolVersion"`
		Arguments       struct {
			Text  string `json:"text"`
			Of    int    `json:"of"`
			Place int    `json:"place"`
			File  string `json:"file"`
		} `json:"arguments"`
	} `json:"params"`
}

// serveScript serves until the input ends, and returns the exit code.
func serveScript(script string, in io.Reader, out io.Writer) int {
	s := &scripted{name: scripts[script], out: out}
	if s.name == nil {
		fmt.Fprintf(os.Stderr, "there is no script %q\n", script)
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
	switch r.Method {
	case "initialize":
		s.answer(r, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`, r.Params.ProtocolVersion))
	case "tools/call":
		s.call(r)
	default:
		s.answer(r, `{}`)
	}
}

func (s *scripted) call(r request) {
	switch r.Params.Name {
	case "echo":
		s.answerText(r, r.Params.Arguments.Text)
	case "meet":
		s.meet(r)
	case "wait":
		go func() { // ends when the file is there, or with the process
			awaitFile(r.Params.Arguments.File)
			s.answerText(r, r.Params.Arguments.Text)
		}()
	case "most":
		s.mu.Lock()
		most := s.most
		s.most = 0
		s.mu.Unlock()
		s.answerText(r, fmt.Sprint(most))
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
	s.answer(r, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

func (s *scripted) answer(r request, result string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending--
	fmt.Fprintf(s.out, `{"jsonrpc":"2.0",%s"result":%s}`+"\n", s.name(r.Method, string(r.ID)), result)
}

//go:build agents

package agents

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// serverArg as the first argument makes the test binary the MCP server behind the gateway.
const serverArg = "--play-server"

// mark returns the description of a tool, by which it is known whatever an agent calls it.
func mark(tool string) string { return "Known to its server as [" + tool + "]." }

const (
	// newestVersion is the last version of MCP that begins with initialize.
	newestVersion = "2025-11-25"
	// longName has the 64 characters that a name may have.
	longName = "a_name_of_sixty_four_characters_as_the_longest_that_tools_can_be"
	// manyTools is how many tools there are beside the ordinary ones with --many.
	manyTools = 80
	// The big result is bigLine, again and again, and bigEnd.
	bigSize = 1 << 20
	bigLine = "This is one line of many in a big result.\n"
	bigEnd  = "This is the end of the big result.\n"
)

// pixel is a PNG image of one red pixel.
var pixel = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde" +
	"\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82"))

// serverCommand returns the command line of the server, to be put after the flags of
// sse-server, and the file that tells what the server saw.
func serverCommand(t *testing.T, flags ...string) (command []string, journal string) {
	t.Helper()
	exe, err := os.Executable()
	ssetest.Must(t, err)
	journal = t.TempDir() + "/journal"
	return append([]string{exe, serverArg, "--journal", journal}, flags...), journal
}

// message is a message as the server needs it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// server is an MCP server on stdio.
type server struct {
	journal string
	many    bool
	alone   string // its only tool; empty: it has the ordinary ones
	asks    bool   // its client takes elicitations

	mu    sync.Mutex // one line at a time
	out   io.Writer
	grown bool // guarded by mu
	asked json.RawMessage
}

// serve runs the server until its input ends.
func serve(args []string, in io.Reader, out io.Writer) {
	s := &server{out: out}
	flags := flag.NewFlagSet(serverArg, flag.ExitOnError)
	boot := flags.Duration("boot", 0, "take as long to start")
	flags.StringVar(&s.journal, "journal", "", "the file that gets a line for each message")
	flags.BoolVar(&s.many, "many", false, "have many tools")
	flags.StringVar(&s.alone, "tool", "", "have this tool alone")
	_ = flags.Parse(args) // ExitOnError
	time.Sleep(*boot)     // what is played here is a slow program
	s.add("ready")
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	var calls sync.WaitGroup
	defer calls.Wait()
	for lines.Scan() {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s\n", err, lines.Bytes())
			os.Exit(4)
		}
		s.note(m)
		switch {
		case m.Method == "" && string(m.ID) == `"question"`:
			s.answerCall(s.asked, text("the user said "+string(m.Result)+string(m.Error)))
		case m.Method == "tools/call":
			calls.Go(func() { s.call(m) }) // ends with the call
		case m.ID != nil && m.Method != "":
			s.answer(m)
		}
	}
}

// note adds a line to the journal, which tests read.
func (s *server) note(m message) {
	line := m.Method
	switch {
	case m.Method == "initialize":
		line += fmt.Sprintf(" %s %s %s %s", m.Params.ClientInfo.Name, m.Params.ClientInfo.Version, m.Params.ProtocolVersion, m.Params.Capabilities)
	case m.Method == "tools/call":
		line += fmt.Sprintf(" %s %s token=%s", m.Params.Name, m.Params.Arguments, m.Params.Meta.ProgressToken)
	case m.Method == "":
		line = fmt.Sprintf("answer %s %s%s", m.ID, m.Result, m.Error)
	}
	s.add(line)
}

func (s *server) add(line string) {
	file, err := os.OpenFile(s.journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Fprintf(file, "%d %s\n", os.Getpid(), line)
	_ = file.Close() // a journal without the line fails the test
}

func (s *server) printf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *server) answer(m message) {
	switch m.Method {
	case "initialize":
		s.asks = strings.Contains(string(m.Params.Capabilities), `"elicitation"`)
		s.printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"demo","version":"1"}}}`,
			m.ID, min(m.Params.ProtocolVersion, newestVersion))
	case "ping":
		s.printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	case "tools/list":
		s.printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, m.ID, strings.Join(s.tools(), ","))
	default:
		s.printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
	}
}

// tools returns the tools, as JSON.
func (s *server) tools() []string {
	const plain = `{"type":"object","properties":{"message":{"type":"string"}}}`
	tool := func(name, schema, more string) string {
		return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s%s}`, name, mark(name), schema, more)
	}
	if s.alone != "" {
		return []string{tool(s.alone, plain, "")}
	}
	all := []string{tool("echo", plain, "")}
	for _, name := range []string{"big", "image", "refuse", "grow", "ask", "die"} {
		all = append(all, tool(name, `{"type":"object","properties":{}}`, ""))
	}
	all = append(all, tool("wait", `{"type":"object","properties":{"seconds":{"type":"number"},"progress":{"type":"boolean"}}}`, ""),
		tool("structure", `{"type":"object","properties":{}}`,
			`,"outputSchema":{"type":"object","properties":{"weather":{"type":"string"}},"required":["weather"]}`))
	if s.many {
		for i := range manyTools - 2 {
			all = append(all, tool(fmt.Sprintf("tool_%d", i), plain, ""))
		}
		all = append(all, tool(longName, plain, ""),
			tool("shapes", `{"type":"object","$defs":{"point":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}},"required":["x","y"]}},`+
				`"properties":{"at":{"$ref":"#/$defs/point"},"size":{"anyOf":[{"type":"number"},{"type":"string","enum":["small","large"]},{"$ref":"#/$defs/point"}]}},"required":["at"]}`, ""))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grown {
		all = append(all, tool("grown", plain, ""))
	}
	return all
}

// text returns the result member of an answer.
func text(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted)
}

func (s *server) answerCall(id json.RawMessage, result string) {
	s.printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// call runs a tool.
func (s *server) call(m message) {
	result := ""
	switch m.Params.Name {
	case "big":
		result = text(strings.Repeat(bigLine, (bigSize-len(bigEnd))/len(bigLine)) + bigEnd)
	case "image":
		result = fmt.Sprintf(`{"content":[{"type":"image","mimeType":"image/png","data":%q}]}`, pixel)
	case "refuse":
		result = `{"isError":true,"content":[{"type":"text","text":"refused by the server"}]}`
	case "structure":
		result = `{"content":[{"type":"text","text":"{\"weather\":\"rain\"}"}],"structuredContent":{"weather":"rain"}}`
	case "grow":
		s.mu.Lock()
		s.grown = true
		s.mu.Unlock()
		s.printf(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		result = text("there is another tool")
	case "ask":
		if s.asks {
			s.asked = m.ID
			s.printf(`{"jsonrpc":"2.0","id":"question","method":"elicitation/create","params":{"message":"Which one?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`)
			return
		}
		result = text("there is nobody to ask")
	case "die":
		os.Exit(5)
	case "wait":
		result = s.wait(m)
	default:
		result = text("called with " + string(m.Params.Arguments))
	}
	s.answerCall(m.ID, result)
}

// wait takes as long as it is told, and reports progress each second if it is told to.
func (s *server) wait(m message) string {
	var arguments struct {
		Seconds  float64 `json:"seconds"`
		Progress bool    `json:"progress"`
	}
	if err := json.Unmarshal(m.Params.Arguments, &arguments); err != nil {
		return text(err.Error())
	}
	over := time.After(time.Duration(arguments.Seconds * float64(time.Second)))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-over:
			return text("waited in full")
		case <-tick.C:
			if arguments.Progress && m.Params.Meta.ProgressToken != nil {
				s.printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":%v}}`,
					m.Params.Meta.ProgressToken, n, arguments.Seconds)
			}
		}
	}
}

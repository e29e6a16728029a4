package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

var errDied = errors.New("this call ends the server, as it was told to")

// maxLine bounds a message, and what is answered in one write.
const maxLine = 1 << 20

// server answers each message at once, in the order they came, or shuffled among
// those that came together. It has one goroutine.
type server struct {
	in      *bufio.Reader
	out     io.Writer
	shuffle bool
	dieAt   int // the call at which run fails; 0: never
	calls   int // that came
	ask     bool
	tools   json.RawMessage
	asked   map[jsonrpc.ID][]byte // answers that wait for the client's, by the id of the request to it

	reports, answers [][]byte // what came together; reports are sent first
	buf              bytes.Buffer
}

func newServer(in io.Reader, out io.Writer, shuffle bool) *server {
	return &server{in: bufio.NewReaderSize(in, maxLine), out: out, shuffle: shuffle, tools: toolList(0)}
}

// run serves until stdin ends. It fails on a line over maxLine, on what cannot be
// read or written, and at the call dieAt: what came together with it has no answer
// either.
func (s *server) run() error {
	for {
		line, err := s.in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read: %w", err)
		}
		s.receive(line)
		if s.dieAt > 0 && s.calls >= s.dieAt {
			return errDied
		}
		if s.more() {
			continue
		}
		if err := s.flush(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
}

// more reports whether another whole line has been read already.
func (s *server) more() bool {
	rest, _ := s.in.Peek(s.in.Buffered()) // of what is buffered: cannot fail
	return bytes.IndexByte(rest, '\n') >= 0
}

// flush writes what is to be said in one write.
func (s *server) flush() error {
	s.buf.Reset()
	for _, lines := range [][][]byte{s.reports, s.answers} {
		if s.shuffle {
			rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		}
		for _, line := range lines {
			s.buf.Write(line)
			s.buf.WriteByte('\n')
		}
	}
	s.reports, s.answers = s.reports[:0], s.answers[:0]
	if s.buf.Len() == 0 {
		return nil
	}
	_, err := s.out.Write(s.buf.Bytes())
	return err
}

// receive handles a message. Nothing of the line is kept.
func (s *server) receive(line []byte) {
	m, err := jsonrpc.Parse(line)
	if err != nil {
		s.fail(jsonrpc.Null, jsonrpc.Errorf(jsonrpc.CodeParseError, "%v", err))
		return
	}
	if m.Kind == jsonrpc.Response && s.asked[m.ID] != nil {
		s.answers = append(s.answers, s.asked[m.ID])
		delete(s.asked, m.ID)
	}
	if m.Kind != jsonrpc.Request {
		return
	}
	switch m.Method {
	case "initialize":
		s.answer(m.ID, initializeResult(m))
	case "ping":
		s.answer(m.ID, json.RawMessage(`{}`))
	case "tools/list":
		s.answer(m.ID, s.tools)
	case "tools/call":
		s.call(m)
	default:
		s.fail(m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found"))
	}
}

// call runs a tool. The message is copied as the JSON string it is.
func (s *server) call(m *jsonrpc.Message) {
	s.calls++
	name, message := m.Param("name").Value, m.Param("arguments", "message").Value
	switch {
	case message == nil || message[0] != '"':
		s.fail(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "message must be a string"))
		return
	case string(name) == `"progress"`:
		s.report(m, message)
		if s.ask {
			s.question(m, message)
			return
		}
	case string(name) != `"echo"`:
		s.fail(m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there are the tools echo and progress"))
		return
	}
	s.answer(m.ID, echoed(message))
}

func echoed(message json.RawMessage) json.RawMessage {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, message)
}

// question asks the client with the message; the call is answered after the client.
func (s *server) question(m *jsonrpc.Message, message json.RawMessage) {
	id := jsonrpc.ID(fmt.Sprintf(`"ask-%d"`, s.calls))
	s.reports = append(s.reports, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"elicitation/create",`+
		`"params":{"message":%s,"requestedSchema":{"type":"object","properties":{}}}}`, id, message))
	if s.asked == nil {
		s.asked = make(map[jsonrpc.ID][]byte)
	}
	s.asked[id] = jsonrpc.NewResult(m.ID, echoed(message))
}

// report sends the progress of a call that asked for it.
func (s *server) report(m *jsonrpc.Message, message json.RawMessage) {
	token := m.Token.Value
	if token == nil {
		return
	}
	for done := 1; done <= 2; done++ {
		s.reports = append(s.reports, jsonrpc.NewNotification("notifications/progress",
			fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":2,"message":%s}`, token, done, message)))
	}
}

func (s *server) answer(id jsonrpc.ID, result json.RawMessage) {
	s.answers = append(s.answers, jsonrpc.NewResult(id, result))
}

func (s *server) fail(id jsonrpc.ID, e *jsonrpc.Error) {
	s.answers = append(s.answers, jsonrpc.NewError(id, e))
}

// initializeResult agrees to the version that the client offers.
func initializeResult(m *jsonrpc.Message) json.RawMessage {
	version := m.Param("protocolVersion").Value
	if version == nil {
		version = json.RawMessage(`"2025-11-25"`)
	}
	return fmt.Appendf(nil,
		`{"protocolVersion":%s,"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1.0"}}`, version)
}

// toolList returns the result of tools/list. It declares progress as safe to repeat, and echo not, so that both kinds
// can be lost. If all is more than two, it has others beside them, each of some 350 bytes.
func toolList(all int) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"tools":[` +
		`{"name":"echo","description":"Returns the message.","inputSchema":` + messageSchema + `},` +
		`{"name":"progress","description":"Returns the message, and reports it as progress before.",` +
		`"annotations":{"readOnlyHint":true},"inputSchema":` + messageSchema + `}`)
	for n := 2; n < all; n++ {
		fmt.Fprintf(&b, `,{"name":"tool_%d","description":%q,"inputSchema":%s}`, n, strings.Repeat("word ", 40), messageSchema)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

const messageSchema = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`

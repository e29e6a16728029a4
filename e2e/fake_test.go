package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// fakeServerArg as the first argument makes the test binary an MCP server on
// stdio that misbehaves as its flags say.
const fakeServerArg = "fake-mcp-server"

// fake returns the command line of the fake server, to be put after "--".
func fake(t *testing.T, flags ...string) []string {
	t.Helper()
	return self(t, fakeServerArg, flags...)
}

// self is fake for any of the servers that the test binary can be.
func self(t *testing.T, server string, flags ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	ssetest.Must(t, err)
	return append([]string{"--", exe, server}, flags...)
}

// fakeMessage is a message as the fake server needs it.
type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Name            string `json:"name"`
		Arguments       struct {
			Message string `json:"message"`
			File    string `json:"file"`
			How     string `json:"how"`
		} `json:"arguments"`
	} `json:"params"`
}

// fakeServer serves MCP until its input ends and returns the exit code. Its
// tools are:
//
//	echo {message}  answers the message
//	pid             answers the number of this process
//	hang {file}     creates the file and never answers
//	late {message}  answers the message after a second
//	record {message, file, how}  adds the message to the file, and answers it; a long one
//	                after 1.5 s. look does the same, and may be repeated
func fakeServer(args []string, in io.Reader, out io.Writer) int {
	flags := flag.NewFlagSet(fakeServerArg, flag.ExitOnError)
	startDelay := flags.Duration("start-delay", 0, "wait before reading the first message")
	until := flags.String("until", "", "wait before reading the first message until this file exists")
	listUntil := flags.String("list-until", "", "wait before answering tools/list until this file exists")
	listChanged := flags.Bool("list-changed", false, "declare that the list of tools may change, as the SDKs do")
	exit := flags.Bool("exit", false, "end at once")
	silent := flags.Bool("silent", false, "read everything, answer nothing")
	stubborn := flags.Bool("stubborn", false, "survive the end of the input and SIGTERM")
	farewell := flags.String("farewell", "", "when the input ends, take 300 ms and create this file with the process number after its name")
	fork := flags.Bool("fork", false, "start a process that outlives this one")
	_ = flags.Parse(args) // ExitOnError
	if *exit {
		fmt.Fprintln(os.Stderr, "fake server: ending at once")
		return 3
	}
	if *stubborn {
		signal.Ignore(syscall.SIGTERM) // its child inherits that
	}
	if *fork {
		if err := exec.Command("sleep", "600").Start(); err != nil {
			fmt.Fprintf(os.Stderr, "fake server: %v\n", err)
			return 4
		}
	}
	awaitFile(*until)
	time.Sleep(*startDelay) // what is played here is a slow program
	tools := "{}"
	if *listChanged {
		tools = `{"listChanged":true}`
	}
	code := serveFake(in, &lockedWriter{w: out}, *silent, *listUntil, tools)
	if *farewell != "" {
		time.Sleep(300 * time.Millisecond)
		if err := os.WriteFile(fmt.Sprint(*farewell, os.Getpid()), nil, 0o600); err != nil {
			fmt.Fprintf(os.Stderr, "fake server: %v\n", err)
		}
	}
	if *stubborn {
		time.Sleep(10 * time.Minute)
	}
	return code
}

// awaitFile waits until a file exists; the empty name is no file.
func awaitFile(name string) {
	for name != "" {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lockedWriter writes each message in one piece, whoever writes.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format, args...)
}

// serveFake serves the fake server. tools is what it declares of them.
func serveFake(in io.Reader, out *lockedWriter, silent bool, listUntil, tools string) int {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var m fakeMessage
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			fmt.Fprintf(os.Stderr, "fake server: %v: %s\n", err, lines.Bytes())
			return 4
		}
		if silent || m.ID == nil || m.Method == "" {
			continue
		}
		answer := func() {
			if result := fakeResult(m, tools); result != "" {
				out.printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, result)
			}
		}
		if m.Method == "tools/list" {
			awaitFile(listUntil)
		}
		if m.Params.Name == "late" {
			time.AfterFunc(time.Second, answer)
		} else {
			answer()
		}
	}
	return 0
}

// fakeResult returns the result or error member of the answer, "" for none.
func fakeResult(m fakeMessage, tools string) string {
	switch m.Method {
	case "initialize":
		return fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":%s},"serverInfo":{"name":"fake","version":"1"}}`,
			m.Params.ProtocolVersion, tools)
	case "ping":
		return `"result":{}`
	case "tools/list":
		return `"result":{"tools":[` + strings.Join(fakeTools(), ",") + `]}`
	case "resources/read":
		return fmt.Sprintf(`"result":{"of":%q}`, m.Method)
	case "tools/call":
		return fakeCall(m)
	}
	return `"error":{"code":-32601,"message":"method not found"}`
}

// fakeTools returns the tools, as JSON. echo and look may be repeated.
func fakeTools() []string {
	const tool = `{"name":%q,"inputSchema":{"type":"object"},"annotations":%s}`
	var all []string
	for _, name := range []string{"echo", "look"} {
		all = append(all, fmt.Sprintf(tool, name, `{"readOnlyHint":true}`))
	}
	for _, name := range []string{"pid", "hang", "late", "record"} {
		all = append(all, fmt.Sprintf(tool, name, `{}`))
	}
	return all
}

func fakeCall(m fakeMessage) string {
	text := m.Params.Arguments.Message
	switch m.Params.Name {
	case "echo", "late":
	case "pid":
		text = fmt.Sprint(os.Getpid())
	case "record", "look":
		if err := addLine(m.Params.Arguments.File, text); err != nil {
			fmt.Fprintf(os.Stderr, "fake server: %v\n", err)
			return ""
		}
		if m.Params.Arguments.How == "long" { // so that its response becomes a stream
			time.Sleep(1500 * time.Millisecond)
		}
	case "hang":
		if err := os.WriteFile(m.Params.Arguments.File, nil, 0o600); err != nil {
			fmt.Fprintf(os.Stderr, "fake server: %v\n", err)
		}
		return ""
	default:
		return `"error":{"code":-32602,"message":"unknown tool"}`
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		fmt.Fprintf(os.Stderr, "fake server: %v\n", err)
		return ""
	}
	return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}]}`, quoted)
}

// addLine adds a line to a file to which other processes add theirs.
func addLine(name, text string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text + "\n")
	return errors.Join(err, file.Close())
}

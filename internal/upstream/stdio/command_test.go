//go:build unix

package stdio_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
	"github.com/mcp-sse/mcp-sse/internal/upstream/upstreamtest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// command is the test binary as a child that behaves in the given way.
func command(t testing.TB, behaviour string, env ...string) stdio.Command {
	t.Helper()
	self, err := os.Executable()
	ssetest.Must(t, err)
	return stdio.Command{
		Path:         self,
		Env:          append(append(os.Environ(), "GORACE=atexit_sleep_ms=0", behaviourEnv+"="+behaviour), env...),
		CloseTimeout: 10 * time.Second, // never reached where the child obeys
	}
}

// recvAll returns all messages up to the final error.
func recvAll(t testing.TB, conn jsonrpc.Conn) (msgs []string, final error) {
	t.Helper()
	for {
		msg, err := conn.Recv()
		if err != nil {
			return msgs, err
		}
		msgs = append(msgs, string(msg))
	}
}

func TestCommandRoundTrip(t *testing.T) {
	conn := upstreamtest.Dial(t, command(t, "echo"))
	long := `{"jsonrpc":"2.0","method":"x","params":{"long":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, msg := range []string{upstreamtest.Ping, long, `{"jsonrpc":"2.0","method":"x","params":{"n":9007199254740993,"u":"ü"}}`} {
		upstreamtest.Send(t, conn, msg)
		ssetest.Want(t, "echo", upstreamtest.Recv(t, conn), msg)
	}
	ssetest.Want(t, "Close", conn.Close(), nil)
	ssetest.WantError(t, "Recv after Close", upstreamtest.RecvError(conn), jsonrpc.ErrClosed)
	ssetest.WantError(t, "Send after Close", conn.Send([]byte(upstreamtest.Ping)), jsonrpc.ErrClosed)
}

// The child gets the principal of its client, and not the value that this process has in
// the same variable.
func TestPrincipalEnv(t *testing.T) {
	c := command(t, "environment", "A=inherited")
	c.PrincipalEnv, c.Dir = "A", t.TempDir()
	for _, principal := range []string{"", "ada"} {
		ctx := t.Context()
		if principal != "" {
			ctx = caller.NewContext(ctx, &caller.Caller{Principal: principal})
		}
		conn, err := c.Dial(ctx)
		ssetest.Must(t, err)
		defer conn.Close()
		ssetest.Want(t, "folder and principal", upstreamtest.Recv(t, conn), `{"jsonrpc":["`+c.Dir+`","`+principal+`"]}`)
	}
	if _, err := c.Dial(caller.NewContext(t.Context(), &caller.Caller{Principal: "a\x00b"})); err == nil || !strings.Contains(err.Error(), "NUL") {
		t.Errorf("got %v", err)
	}
}

func TestCommandArgumentsReachNoShell(t *testing.T) {
	c := command(t, "arguments")
	c.Args = []string{"$HOME", "a b", ";", "`id`"}
	ssetest.Want(t, "arguments", upstreamtest.Recv(t, upstreamtest.Dial(t, c)), "{\"jsonrpc\":\"$HOME,a b,;,`id`\"}")
}

// A line over the limit ends the session, however long it is and whether it ends.
func TestCommandWritesALineThatIsTooLong(t *testing.T) {
	for name, line := range map[string]string{
		"a message": `{"a":"` + strings.Repeat("x", 200) + "\"}\n{}\n", "without an end": strings.Repeat("x", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			c := command(t, "output", "OUTPUT="+helloLine+"\n"+line)
			c.MaxLineBytes = 100
			got, err := recvAll(t, upstreamtest.Dial(t, c))
			if len(got) != 1 || !errors.Is(err, jsonrpc.ErrTooLong) || !strings.Contains(err.Error(), "size limit of 100 bytes") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestCommandToleratesGarbage(t *testing.T) {
	var logs ssetest.Output
	counts := metrics.NewRegistry()
	got, err := recvAll(t, upstreamtest.Dial(t, command(t, "garbage").Observed(ssetest.Logger(&logs), metrics.New(counts))))
	want := []string{helloLine, "{\"jsonrpc\":\"a\uFFFDb\"}", `{"jsonrpc":1}`}
	if !errors.Is(err, io.EOF) || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	ssetest.Want(t, "warnings", strings.Count(logs.String(), "level=WARN"), 5)
	ssetest.Want(t, "drops", ssetest.Sum(t, counts, "mcp_sse_messages_dropped_total", "invalid_message"), 5)
	ssetest.WantText(t, "log", logs.String(), `one JSON message a line; log to stderr" command=`, `text="Server listening on stdio" bytes=25`)
}

// A server that ends in the middle of a message takes none of the whole ones before it along.
func TestCommandEndsInTheMiddleOfAMessage(t *testing.T) {
	const cut = `{"jsonrpc":"2.0","id":2,"result":{"a":"b`
	for output, want := range map[string]string{
		cut: "", helloLine + cut: helloLine, helloLine + helloLine + cut: helloLine + helloLine,
	} {
		var logs ssetest.Output
		c := command(t, "output", "OUTPUT="+output).Observed(ssetest.Logger(&logs), nil)
		got, err := recvAll(t, upstreamtest.Dial(t, c))
		if !errors.Is(err, io.EOF) || strings.Join(got, "") != want {
			t.Errorf("%s: got %q, %v", output, got, err)
		}
		ssetest.WantText(t, "log", logs.String(), "server ended in the middle of a message")
	}
}

// JSON over several lines is named as that, once, and no part of it is logged.
func TestCommandSpreadsAMessageOverLines(t *testing.T) {
	var logs ssetest.Output
	output := "OUTPUT={\n  \"jsonrpc\": \"2.0\",\n  \"x\": [\n    {}\n  ],\n  \"result\": \"secret\"\n}\n" + helloLine + "\n" + strings.Repeat("long ", 50) + "\n"
	got, err := recvAll(t, upstreamtest.Dial(t, command(t, "output", output).Observed(ssetest.Logger(&logs), nil)))
	if len(got) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("got %q, %v", got, err)
	}
	if strings.Count(logs.String(), "level=WARN") != 2 || !strings.Contains(logs.String(), "json over several lines") || strings.Contains(logs.String(), "secret") ||
		!strings.Contains(logs.String(), `text="`+strings.Repeat("long ", 16)+`…"`) {
		t.Errorf("logged\n%s", &logs)
	}
}

func TestCommandEnds(t *testing.T) {
	tests := []struct {
		behaviour string
		want      string
		eof       bool
		counted   string
	}{
		{"exit-7", "exit status 7; stderr: cannot find module", false, "error"},
		{"exit-0", "exit status 0, wrote no JSON-RPC to stdout; stderr: usage: server [flags]", true, "ok"},
		{"output", "exit status 0, wrote no JSON-RPC to stdout", true, "ok"},
		{"talk", "exit status 0, wrote no JSON-RPC to stdout, but text: Hello", true, "ok"},
		{"kill-self", "killed by signal: killed", false, "signal"},
		{"no-such", "exit status 99; stderr: no such behaviour: no-such", false, "error"},
	}
	for _, test := range tests {
		t.Run(test.behaviour, func(t *testing.T) {
			counts := metrics.NewRegistry()
			conn := upstreamtest.Dial(t, command(t, test.behaviour).Observed(nil, metrics.New(counts)))
			_, err := conn.Recv()
			if err == nil || err.Error() != test.want || errors.Is(err, io.EOF) != test.eof {
				t.Errorf("Recv: got %v, want %s", err, test.want)
			}
			ssetest.Want(t, "exits", ssetest.Sum(t, counts, "mcp_sse_child_exits_total", test.counted), 1)
			ssetest.Want(t, "starts", ssetest.Sum(t, counts, "mcp_sse_child_starts_total", "ok"), 1)
			if err := conn.Send([]byte(upstreamtest.Ping)); err == nil || !strings.HasPrefix(test.want, err.Error()) {
				t.Errorf("Send: got %v, want the start of %s", err, test.want)
			}
			if _, again := conn.Recv(); again == nil || again.Error() != err.Error() {
				t.Errorf("second Recv: got %v, want %v", again, err)
			}
			ssetest.Want(t, "Close", conn.Close(), nil)
			ssetest.WantError(t, "Recv after Close", upstreamtest.RecvError(conn), jsonrpc.ErrClosed)
		})
	}
}

// Also of a child that has served, the error says what it wrote to stderr as it died.
func TestCommandDiesWithItsReason(t *testing.T) {
	conn := upstreamtest.Dial(t, command(t, "hello-exit-7"))
	if _, err := conn.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Recv(); err == nil || err.Error() != "exit status 7; stderr: out of memory" {
		t.Errorf("got %v", err)
	}
}

// lines is a log that a test reads line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// A child that writes text is told from one that is silent, until it writes a message.
func TestExcuse(t *testing.T) {
	t.Parallel()
	log := make(lines, 10)
	c, _ := command(t, "talk-first").Observed(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})), nil).(stdio.Command)
	conn := upstreamtest.Dial(t, c)
	received := make(chan error, 1)
	go func() { received <- upstreamtest.RecvError(conn) }()
	if line := <-log; !strings.Contains(c.Excuse(), "writes text to stdout") {
		t.Errorf("after %q the excuse is %q", line, c.Excuse())
	}
	upstreamtest.Send(t, conn, upstreamtest.Ping) // it comes back
	if err := <-received; err != nil || c.Excuse() != "" {
		t.Errorf("after a message (%v) the excuse is %q", err, c.Excuse())
	}
	ssetest.Want(t, "Close", conn.Close(), nil)
}

// An error says what a child that sends no message does wrong, and has its last lines on stderr.
func TestExcuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ behaviour, output, want string }{
		"text":             {"writes", "Server listening\n", "writes text to stdout"},
		"frames":           {"writes", "Content-Length: 36\r\n\r\n", "Content-Length"},
		"several lines":    {"writes", "{\n  \"jsonrpc\": \"2.0\",\n", "JSON over several lines"},
		"no end":           {"writes", `{"jsonrpc":"2.0","id":1,"result":{}}`, "does not end the line"},
		"nothing is read":  {"never-read", "", "has not read what was sent"},
		"nothing is wrong": {"echo", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := command(t, test.behaviour, "OUTPUT="+test.output).Observed(nil, nil).(stdio.Command)
			c.CloseTimeout = 50 * time.Millisecond
			conn := upstreamtest.Dial(t, c)
			received := make(chan error, 1)
			go func() { received <- upstreamtest.RecvError(conn) }()
			upstreamtest.Send(t, conn, upstreamtest.Ping)
			said := conn.(interface{ LastWords() string })
			for test.behaviour == "writes" && said.LastWords() != "Error: it has written" {
				runtime.Gosched()
			}
			for test.want != "" && !strings.Contains(c.Excuse(), test.want) {
				runtime.Gosched() // the output is on its way; without it, the test does not end
			}
			if test.want == "" {
				ssetest.Want(t, "the message that comes back", <-received, nil)
				ssetest.Want(t, "excuse", c.Excuse(), "")
			}
			ssetest.Want(t, "Close", conn.Close(), nil)
			if test.want != "" {
				<-received
			}
		})
	}
}

func TestCommandThatNeverReads(t *testing.T) {
	c := command(t, "never-read")
	c.CloseTimeout = 50 * time.Millisecond
	conn := upstreamtest.Dial(t, c)
	msg := []byte(`{"jsonrpc":"` + strings.Repeat("x", 1<<20) + `"}`)
	sent := 0
	var err error
	for ; err == nil && sent < 100; err = conn.Send(msg) {
		sent++
	}
	if !errors.Is(err, jsonrpc.ErrBusy) || sent > 11 {
		t.Errorf("after %d MiB: got %v, want ErrBusy after 8 and what is being written", sent, err)
	}
	ssetest.Want(t, "Close", conn.Close(), nil)
}

func TestCommandThatClosesItsPipes(t *testing.T) {
	defer stdio.SetExitGrace(50 * time.Millisecond)() // these do not exit
	for behaviour, want := range map[string]string{
		"close-stdout": "server closed its stdout and went on running",
		"close-stdin":  "server closed its stdin: broken pipe",
	} {
		t.Run(behaviour, func(t *testing.T) {
			c := command(t, behaviour)
			c.CloseTimeout = time.Hour // says nothing of when the client learns of it
			conn := upstreamtest.Dial(t, c)
			upstreamtest.Recv(t, conn)
			upstreamtest.Send(t, conn, upstreamtest.Ping)
			ssetest.Want(t, "Recv", upstreamtest.RecvError(conn), want)
			ssetest.Want(t, "Close", conn.Close(), nil)
		})
	}
}

// A start that fails says why in plain words, once. The cause can be found in the error.
func TestCommandThatCannotStart(t *testing.T) {
	dir := t.TempDir()
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{"program": {"#!/no/such/interpreter\n", 0o755}, "text": {"#!/bin/sh\n", 0o644}, "script": {"echo\n", 0o755}, "crlf": {"#!/bin/sh\r\nexec cat\r\n", 0o755}} {
		ssetest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(file.text), file.mode))
	}
	const (
		notInPath  = "there is no such program in PATH: install it or give its path"
		noFile     = "there is no such file, or the interpreter in its first line is missing: check the path"
		mayNot     = "it may not be executed: check its permissions (chmod +x) and those of its folder"
		noHashbang = "it has no #! line, or is made for another machine"
	)
	for _, tt := range []struct {
		name        string
		c           stdio.Command
		check, dial string // the errors after the name of the program; "": there is none
		cause       error
	}{
		{"in PATH", stdio.Command{Path: "true"}, "", "", nil},
		{"relative to its directory, no interpreter", stdio.Command{Path: "./program", Dir: dir}, "", noFile, fs.ErrNotExist},
		{"with the line ends of Windows", stdio.Command{Path: "./crlf", Dir: dir}, "",
			"its first line ends as lines of Windows do, so its interpreter is not found: save it with the line ends of Unix (LF)", fs.ErrNotExist},
		{"no such directory", stdio.Command{Path: "true", Dir: dir + "/none"}, "",
			fmt.Sprintf("its working directory %q cannot be used: create it or give another", dir+"/none"), fs.ErrNotExist},
		{"not in PATH", stdio.Command{Path: "no-such-server-xyz"}, notInPath, notInPath, exec.ErrNotFound},
		{"no such file", stdio.Command{Path: "./nothing", Dir: dir}, noFile, noFile, fs.ErrNotExist},
		{"not executable", stdio.Command{Path: dir + "/text"}, mayNot, mayNot, fs.ErrPermission},
		{"without #!", stdio.Command{Path: dir + "/script"}, "", noHashbang, syscall.ENOEXEC},
		{"a directory", stdio.Command{Path: dir}, "it is a directory: give the path of a program", mayNot, nil},
		{"nothing", stdio.Command{}, "no program is given", "no program is given", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check := func(err error, want string) {
				if want != "" {
					want = fmt.Sprintf("start %q: %s", tt.c.Path, want)
				}
				if (err == nil) != (want == "") || err != nil && err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				if err != nil && tt.cause != nil && !errors.Is(err, tt.cause) {
					t.Errorf("the cause of %v is not %v", err, tt.cause)
				}
			}
			check(tt.c.Check(), tt.check)
			counts := metrics.NewRegistry()
			conn, err := tt.c.Observed(nil, metrics.New(counts)).Dial(t.Context())
			check(err, tt.dial)
			if err == nil {
				_ = conn.Close()
			} else if ssetest.Sum(t, counts, "mcp_sse_child_starts_total", "error") != 1 {
				t.Error("not counted")
			}
		})
	}
}

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// driver is a TypeScript client in a process of its own: clients/run.mjs.
type driver struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan reply // closed when the process closes its stdout
	errOut  output
	last    reply
	closed  bool
}

// reply is what run.mjs prints for a step.
type reply struct {
	traffic
	Step    string            `json:"step"`
	OK      bool              `json:"ok"`
	Tools   []string          `json:"tools"`
	Text    string            `json:"text"`
	Texts   []string          `json:"texts"`
	Answers []json.RawMessage `json:"answers"`
	Error   struct {
		Name    string          `json:"name"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	MS int `json:"ms"`
}

func (r reply) err() error {
	if r.OK {
		return nil
	}
	var code int
	if json.Unmarshal(r.Error.Code, &code) == nil && (r.Error.Name == "McpError" || r.Error.Name == "ProtocolError") {
		return &rpcError{Code: code, Message: r.Error.Message, Data: r.Error.Data}
	}
	return fmt.Errorf("%s: %s (code %s)", r.Error.Name, r.Error.Message, r.Error.Code)
}

func openNode(sdk string) func(*testing.T, string) client {
	return func(t *testing.T, url string) client {
		t.Helper()
		return startDriver(t, sdk, url)
	}
}

func startDriver(t *testing.T, sdk, url string) *driver {
	t.Helper()
	d := &driver{t: t, replies: make(chan reply)}
	d.cmd = exec.Command(node(t), "run.mjs", "--client", sdk, "--url", url)
	d.cmd.Dir = clientsDir
	d.cmd.Stderr = &d.errOut
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("start %s: %v", sdk, err)
	}
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatalf("start %s: %v", sdk, err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", sdk, err)
	}
	go func() { // ends when the process closes its stdout; close waits for that
		defer close(d.replies)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var r reply
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r.Error.Message = fmt.Sprintf("printed %q: %v", lines.Text(), err)
			}
			d.replies <- r
		}
	}()
	t.Cleanup(d.close)
	return d
}

// step runs one step of run.mjs. An argument that is not a string becomes JSON.
func (d *driver) step(ctx context.Context, verb string, args ...any) (reply, error) {
	line := []byte(verb)
	for _, arg := range args {
		word, ok := arg.(string)
		if !ok {
			raw, err := json.Marshal(arg)
			if err != nil {
				return reply{}, err
			}
			word = string(raw)
		}
		line = append(append(line, ' '), word...)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return reply{}, fmt.Errorf("%w\n%s", err, d.errOut.tail())
	}
	select {
	case r, ok := <-d.replies:
		if !ok {
			return reply{}, fmt.Errorf("the client died: %s", d.errOut.tail())
		}
		d.last = r
		return r, r.err()
	case <-ctx.Done():
		_ = d.cmd.Process.Kill() // it would still be at this step when close asks it to end
		return reply{}, fmt.Errorf("step %s: %w\n%s", verb, ctx.Err(), d.errOut.tail())
	}
}

func (d *driver) connect(ctx context.Context) error {
	_, err := d.step(ctx, "connect")
	return err
}

func (d *driver) listTools(ctx context.Context) ([]string, error) {
	r, err := d.step(ctx, "list")
	return r.Tools, err
}

func (d *driver) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	r, err := d.step(ctx, "call", name, args)
	return r.Text, err
}

func (d *driver) callAll(ctx context.Context, name string, args []map[string]any) ([]string, error) {
	r, err := d.step(ctx, "burst", name, args)
	return r.Texts, err
}

func (d *driver) saw() traffic { return d.last.traffic }

// close ends the process.
func (d *driver) close() {
	if d.closed {
		return
	}
	d.closed = true
	_ = d.in.Close() // run.mjs ends at the end of its input
	kill := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	defer kill.Stop()
	for range d.replies { // until its stdout ends, which Wait wants
	}
	_ = d.cmd.Wait() // it exits with 1 when a step failed, which some must
}

// inspector is the CLI of the MCP Inspector: one process, one connection and
// one request for each step.
type inspector struct {
	t    *testing.T
	url  string
	era  string // "auto" sends server/discover first
	runs int
}

func openInspector(era string) func(*testing.T, string) client {
	return func(t *testing.T, url string) client {
		t.Helper()
		return &inspector{t: t, url: url, era: era}
	}
}

// inspection is what the CLI prints with --format json.
type inspection struct {
	Result struct {
		ServerInfo struct {
			Name string `json:"name"`
		} `json:"serverInfo"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
}

func (i *inspector) run(ctx context.Context, args ...string) (inspection, error) {
	i.runs++
	all := append([]string{
		npm(i.t, ".bin/mcp-inspector"), "--cli", i.url, "--transport", "sse", "--format", "json", "--quiet", "--protocol-era", i.era,
		"--connect-timeout", fmt.Sprint(patience.Milliseconds()),
	}, args...)
	cmd := exec.CommandContext(ctx, node(i.t), all...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return inspection{}, inspectorError(err, errOut.String())
	}
	var got inspection
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return got, fmt.Errorf("inspector printed %s: %w", out.Bytes(), err)
	}
	return got, nil
}

// inspectorError returns the error that the CLI writes on stderr.
func inspectorError(err error, printed string) error {
	var envelope struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(strings.TrimSpace(printed)), &envelope) == nil && envelope.Error.Message != "" {
		return &rpcError{Message: envelope.Error.Message}
	}
	return errors.Join(err, errors.New(printed))
}

func (i *inspector) connect(ctx context.Context) error {
	_, err := i.run(ctx, "--method", "initialize")
	return err
}

func (i *inspector) listTools(ctx context.Context) ([]string, error) {
	got, err := i.run(ctx, "--method", "tools/list")
	var names []string
	for _, tool := range got.Result.Tools {
		names = append(names, tool.Name)
	}
	return names, err
}

func (i *inspector) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	got, err := i.run(ctx, "--method", "tools/call", "--tool-name", name, "--tool-args-json", string(raw))
	var text string
	for _, part := range got.Result.Content {
		text += part.Text
	}
	return text, err
}

func (i *inspector) callAll(ctx context.Context, name string, args []map[string]any) ([]string, error) {
	var texts []string
	for a := range slices.Values(args) {
		text, err := i.callTool(ctx, name, a)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func (i *inspector) saw() traffic { return traffic{Streams: i.runs} }
func (i *inspector) close()       {}

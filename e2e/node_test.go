package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// driver is a script of TypeScript clients in a process of its own.
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
	crowdReport
	Step    string            `json:"step"`
	OK      bool              `json:"ok"`
	Tools   []string          `json:"tools"`
	Text    string            `json:"text"`
	Texts   []string          `json:"texts"`
	Count   int               `json:"count"` // of progress
	Answers []json.RawMessage `json:"answers"`
	Error   struct {
		Name    string          `json:"name"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
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

func openNode(sdk string) opener {
	return func(t *testing.T, url string, over transport, name string) client {
		t.Helper()
		flags := []string{"--transport", string(over)}
		if name != "" {
			flags = append(flags, "--answers", name)
		}
		return startDriver(t, sdk, url, flags...)
	}
}

func startDriver(t *testing.T, sdk, url string, flags ...string) *driver {
	t.Helper()
	return startScript(t, append([]string{"run.mjs", "--client", sdk, "--url", url}, flags...)...)
}

// startScript starts a script of clients/ that takes steps as run.mjs does.
func startScript(t *testing.T, script ...string) *driver {
	t.Helper()
	d := &driver{t: t, replies: make(chan reply)}
	d.cmd = exec.Command(node(t), script...)
	d.cmd.Dir = clientsDir
	d.cmd.Stderr = &d.errOut
	out, err := d.cmd.StdoutPipe()
	ssetest.Must(t, err)
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatalf("start %s: %v", script, err)
	}
	ssetest.Must(t, d.cmd.Start())
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
		return reply{}, fmt.Errorf("%w\n%s", err, d.errOut.Tail())
	}
	select {
	case r, ok := <-d.replies:
		if !ok {
			return reply{}, fmt.Errorf("the client died: %s", d.errOut.Tail())
		}
		d.last = r
		return r, r.err()
	case <-ctx.Done():
		_ = d.cmd.Process.Kill() // it would still be at this step when close asks it to end
		return reply{}, fmt.Errorf("step %s: %w\n%s", verb, ctx.Err(), d.errOut.Tail())
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

// progress needs no wait: run.mjs counts what comes before the answer.
func (d *driver) progress(ctx context.Context, name string, args map[string]any, _ int) (int, error) {
	r, err := d.step(ctx, "progress", name, args)
	return r.Count, err
}

func (d *driver) read(ctx context.Context, uri string) (string, error) {
	r, err := d.step(ctx, "read", map[string]string{"uri": uri})
	return r.Text, err
}

func (d *driver) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	r, err := d.step(ctx, "prompt", name, args)
	return r.Text, err
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

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// inspector is the CLI of the MCP Inspector: one process, one connection and
// one request for each step.
type inspector struct {
	t    *testing.T
	url  string
	over transport
	era  string // "auto" sends server/discover first
	runs int
}

func openInspector(era string) opener {
	return func(t *testing.T, url string, over transport, _ string) client {
		t.Helper()
		return &inspector{t: t, url: url, over: over, era: era}
	}
}

func (i *inspector) run(ctx context.Context, args ...string) (json.RawMessage, error) {
	i.runs++
	transport := "sse"
	if i.over == streamable {
		transport = "http"
	}
	all := append([]string{
		npm(i.t, ".bin/mcp-inspector"), "--cli", i.url, "--transport", transport, "--format", "json", "--quiet", "--protocol-era", i.era,
		"--connect-timeout", fmt.Sprint(patience.Milliseconds()),
	}, args...)
	cmd := exec.CommandContext(ctx, node(i.t), all...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, inspectorError(err, errOut.String())
	}
	var got struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return nil, fmt.Errorf("inspector printed %s: %w", out.Bytes(), err)
	}
	return got.Result, nil
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
	return toolsOf(i.run(ctx, "--method", "tools/list"))
}

func (i *inspector) callTool(ctx context.Context, name string, args map[string]any) (string, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	return textOf(i.run(ctx, "--method", "tools/call", "--tool-name", name, "--tool-args-json", string(raw)))
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

// progress: the CLI shows none.
func (i *inspector) progress(context.Context, string, map[string]any, int) (int, error) {
	return 0, errors.ErrUnsupported
}

func (i *inspector) read(ctx context.Context, uri string) (string, error) {
	return textOf(i.run(ctx, "--method", "resources/read", "--uri", uri))
}

func (i *inspector) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	all := []string{"--method", "prompts/get", "--prompt-name", name}
	for key, value := range args {
		all = append(all, "--prompt-args", key+"="+value)
	}
	return textOf(i.run(ctx, all...))
}

func (i *inspector) saw() traffic { return traffic{Streams: i.runs} }
func (i *inspector) close()       {}

// The line that people paste runs with the Inspector. The npx of this test takes the one that is installed here.
func TestInspectorLineThatPeoplePaste(t *testing.T) {
	t.Parallel()
	g, dir := startGateway(t), t.TempDir()
	line, err := exec.CommandContext(t.Context(), built(t, "sse-server"), "connect", "inspector", "--url", g.url).Output()
	if err != nil || !strings.Contains(string(line), g.url) {
		t.Fatalf("got %s (%v)", line, err)
	}
	npx := fmt.Sprintf("#!/bin/sh\n[ \"$1 $2\" = '-y @modelcontextprotocol/inspector@latest' ] || exit 9\nshift 2\nexec '%s' '%s' \"$@\"\n",
		node(t), npm(t, ".bin/mcp-inspector"))
	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "npx"), []byte(npx), 0o700))
	paste := exec.CommandContext(t.Context(), "sh", "-c", string(line))
	paste.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := paste.CombinedOutput(); err != nil || !strings.Contains(string(out), `"echo"`) {
		t.Errorf("%sgot %s (%v)", line, out, err)
	}
}

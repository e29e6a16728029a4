package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
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
		Contents []struct {
			Text string `json:"text"`
		} `json:"contents"`
		Messages []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	} `json:"result"`
}

func (i *inspector) run(ctx context.Context, args ...string) (inspection, error) {
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

// progress: the CLI shows none.
func (i *inspector) progress(context.Context, string, map[string]any, int) (int, error) {
	return 0, errors.ErrUnsupported
}

func (i *inspector) read(ctx context.Context, uri string) (string, error) {
	got, err := i.run(ctx, "--method", "resources/read", "--uri", uri)
	var text string
	for _, part := range got.Result.Contents {
		text += part.Text
	}
	return text, err
}

func (i *inspector) prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	all := []string{"--method", "prompts/get", "--prompt-name", name}
	for key, value := range args {
		all = append(all, "--prompt-args", key+"="+value)
	}
	got, err := i.run(ctx, all...)
	var text string
	for _, m := range got.Result.Messages {
		text += m.Content.Text
	}
	return text, err
}

func (i *inspector) saw() traffic { return traffic{Streams: i.runs} }
func (i *inspector) close()       {}

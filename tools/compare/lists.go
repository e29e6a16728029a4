package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The view whose lists are measured, and how many clients list in a round.
const (
	listMembers  = 50
	listTools    = 40
	listsOfRound = 20
)

// compareLists measures tools/list of a view whose servers boot, from memory: one client lists until all tools are
// there, and the gateway is started again. It lists as clients with a session do and as those of 2026-07-28, which
// have none. The first list of the gateway is apart: it joins the lists.
func (a *arguments) compareLists(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "compare-lists-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, err := a.writeListConfig(dir)
	if err != nil {
		return err
	}
	command := a.gateway("--config", config, "--warm", "0")
	if err := a.withGateway(command, func(url string) error { return a.awaitAllTools(ctx, url) }); err != nil {
		return err
	}
	return a.withGateway(command, func(url string) error {
		first, bytes, err := listOnce(ctx, url, true)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "tools/list of %d servers with %d tools each, which boot %v, from memory: %d bytes\n",
			listMembers, listTools, a.Boot, bytes)
		fmt.Fprintf(w, "the first list of the gateway, with initialize: %v\n", micros(first))
		for _, hasSession := range []bool{true, false} {
			name := "clients of 2026-07-28"
			if hasSession {
				name = "clients with a session, and initialize"
			}
			var all []time.Duration
			for range a.Rounds * listsOfRound {
				took, _, err := listOnce(ctx, url, hasSession)
				if err != nil {
					return err
				}
				all = append(all, took)
			}
			slices.Sort(all)
			fmt.Fprintf(w, "%s: p50 %v, p99 %v of %d\n",
				name, micros(median(all)), micros(all[len(all)*99/100]), len(all))
		}
		return nil
	})
}

// writeListConfig writes the configuration of the view.
func (a *arguments) writeListConfig(dir string) (path string, err error) {
	servers, members := map[string]any{}, map[string]any{}
	echo, err := filepath.Abs(a.binary("echo"))
	if err != nil {
		return "", err
	}
	for n := range listMembers {
		name := fmt.Sprintf("m%02d", n)
		servers[name] = map[string]any{
			"command": []string{echo, "-tools", fmt.Sprint(listTools), "-boot", a.Boot.String()},
		}
		members[name] = map[string]any{}
	}
	view := map[string]any{"servers": members}
	text, err := json.Marshal(map[string]any{"servers": servers, "views": map[string]any{"all": view}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "servers.json")
	return path, os.WriteFile(path, text, 0o600)
}

// withGateway runs do with the URL of the view, while the gateway runs.
func (a *arguments) withGateway(command []string, do func(url string) error) error {
	p, err := start("gateway", command, a.Timeout)
	if err != nil {
		return err
	}
	base, _, _ := strings.Cut(strings.TrimPrefix(p.url, "http://"), "/")
	return errors.Join(do("http://"+base+"/all/mcp"), p.stop())
}

// awaitAllTools lists until all tools are there.
func (a *arguments) awaitAllTools(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout+2*a.Boot)
	defer cancel()
	session, err := post(ctx, url, "", listInitialize)
	if err != nil {
		return err
	}
	for {
		answer, err := post(ctx, url, session.id, listRequest)
		if err != nil {
			return err
		}
		if bytes.Count(answer.body, []byte(`"inputSchema"`)) == listMembers*listTools {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the view does not have all tools: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

const (
	listInitialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"compare","version":"1"}}}`
	listRequest = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	listModern  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"compare","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// listOnce lists as one client, with a session of its own or without any, and returns how long that took.
func listOnce(ctx context.Context, url string, hasSession bool) (took time.Duration, size int, err error) {
	began := time.Now()
	var session, answer posted
	if hasSession {
		session, err = post(ctx, url, "", listInitialize)
		if err == nil {
			answer, err = post(ctx, url, session.id, listRequest)
		}
	} else {
		answer, err = post(ctx, url, "", listModern)
	}
	took = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if n := bytes.Count(answer.body, []byte(`"inputSchema"`)); n != listMembers*listTools {
		return 0, 0, fmt.Errorf("the list has %d tools", n)
	}
	if hasSession {
		err = leave(ctx, url, session.id)
	}
	return took, len(answer.body), err
}

// posted is the answer to a POST, and the session that it is of.
type posted struct {
	id   string
	body []byte
}

func post(ctx context.Context, url, session, message string) (posted, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		return posted{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if message == listModern {
		r.Header.Set("MCP-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "tools/list")
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return posted{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", answer.Status, body)
	}
	return posted{answer.Header.Get("Mcp-Session-Id"), body}, err
}

// leave ends a session.
func leave(ctx context.Context, url, session string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Mcp-Session-Id", session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	// maxPages bounds the tool list.
	maxPages = 100
	// firstPage is the id of the request for the first page of the tool list. Calls
	// have lower ids.
	firstPage = 1_000_000_000
)

// newCall returns call number id of a client, and its message. All clients make the
// same calls, except for the secret.
func (r *run) newCall(c *client, id int64) (*call, []byte) {
	k := &call{client: c, id: id, method: "tools/call", secret: newSecret(), marked: true, done: make(chan answer, 1)}
	tool, argument := r.opts.Tool, r.opts.Argument
	if r.opts.ProgressTool != "" && id%2 == 0 {
		tool, argument = r.opts.ProgressTool, r.opts.ProgressArgument
		k.marked, k.reports = argument != "", argument != ""
	}
	k.tool = tool
	arguments := []byte("{}")
	if argument != "" {
		arguments = fmt.Appendf(nil, `{%s:"%s%s"}`, quote(argument), k.secret, r.padding)
	}
	meta := c.meta()
	if meta != "" {
		meta = "," + meta
	}
	return k, fmt.Appendf(nil,
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":{"progressToken":%d%s}}}`,
		id, quote(tool), arguments, id, meta)
}

// newPadding returns size bytes of text that needs no escapes in JSON.
func newPadding(size int) string {
	const words = " the quick brown fox jumps over the lazy dog"
	return strings.Repeat(words, size/len(words)+1)[:size]
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string always has a JSON form
	return b
}

// scout opens one stream, finds out what to call, and calls it once, in a run of its
// own. The options that it returns name the tool and its argument.
func (r *run) scout(ctx context.Context) (Options, error) {
	opts := r.opts
	r = &run{opts: opts, site: r.site, padding: r.padding, register: register{callers: map[string]*call{}}}
	c, err := r.openClient(ctx, 0)
	if err != nil {
		return opts, err
	}
	defer c.close()
	if opts.Tool == "" || opts.Argument == "" {
		r.opts.Tool, r.opts.Argument, err = c.findTool(ctx, opts.Tool, opts.Argument)
		if err != nil {
			return opts, err
		}
	}
	p := c.poster()
	defer p.close()
	k, message := r.newCall(c, 1)
	r.register.add(k)
	c.begin(k)
	if err := c.post(ctx, p, k, message); err != nil {
		return opts, err
	}
	return r.opts, c.awaitTrial(ctx, k)
}

// awaitTrial waits for the answer to the first call.
func (c *client) awaitTrial(ctx context.Context, k *call) error {
	timer := time.NewTimer(c.run.opts.Timeout)
	defer timer.Stop()
	a, err := c.await(ctx, k, timer)
	tool := c.run.opts.Tool
	switch {
	case err != nil:
		return fmt.Errorf("call of tool %s: %w", tool, err)
	case a.result == nil:
		return fmt.Errorf("tool %s refused: %.300s", tool, a.refusal)
	case a.wrong:
		return fmt.Errorf("tool %s does not return its argument %s: %.300s", tool, c.run.opts.Argument, a.result)
	}
	return nil
}

// tool is an entry of the tool list.
type tool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	} `json:"inputSchema"`
}

// findTool returns the tool with that name, by default echo, and the argument with
// that name, by default the tool's only string argument.
func (c *client) findTool(ctx context.Context, name, argument string) (string, string, error) {
	if name == "" {
		name = "echo"
	}
	tools, err := c.listTools(ctx)
	if err != nil {
		return "", "", fmt.Errorf("list tools: %w", err)
	}
	names := []string{}
	for _, t := range tools {
		names = append(names, t.Name)
		if t.Name != name {
			continue
		}
		if argument != "" {
			return name, argument, nil
		}
		texts := []string{}
		for property, schema := range t.InputSchema.Properties {
			if schema.Type == "string" {
				texts = append(texts, property)
			}
		}
		if len(texts) != 1 {
			return "", "", fmt.Errorf("tool %s has %d string arguments, not one: name the one that it returns", name,
				len(texts))
		}
		return name, texts[0], nil
	}
	return "", "", fmt.Errorf("there is no tool %s among %q: name one that returns its argument", name, names)
}

// listTools returns all pages of the tool list.
func (c *client) listTools(ctx context.Context) ([]tool, error) {
	p := c.poster()
	defer p.close()
	var all []tool
	params := "{}"
	for page := range int64(maxPages) {
		result, err := c.ask(ctx, p, firstPage+page, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var list struct {
			Tools      []tool `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(result, &list); err != nil {
			return nil, err
		}
		all = append(all, list.Tools...)
		if list.NextCursor == "" {
			return all, nil
		}
		params = fmt.Sprintf(`{"cursor":%s}`, quote(list.NextCursor))
	}
	return nil, fmt.Errorf("more than %d pages", maxPages)
}

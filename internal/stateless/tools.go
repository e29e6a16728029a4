package stateless

import (
	"encoding/json"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcp-sse/mcp-sse/internal/pages"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

const (
	// maxToolPages bounds the pages of a list of tools.
	maxToolPages = 64
	// maxTools bounds the tools whose mirrored arguments are remembered.
	maxTools = 4096
	// listPause is how long List does not list the tools again after it failed.
	listPause = time.Minute
)

var errNoList = errors.New("the server gives no list of tools")

var seed = maphash.MakeSeed()

// Tools knows which arguments of a server's tools are mirrored in headers. The zero value
// knows none. It is safe for concurrent use.
type Tools struct {
	mu       sync.Mutex // guards what follows
	mirrored map[string][]Param
	complete bool
	failed   time.Time // when List failed last
	// noted is a hash of the last page that was noted, and had no broken tool: it is not read again. A view sends
	// hundreds of kilobytes to each client.
	noted uint64

	listing singleflight.Group
}

// Mirrored returns the mirrored arguments of a tool. It reports false if it may have some
// that are not known.
func (t *Tools) Mirrored(name string) ([]Param, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	params, ok := t.mirrored[name]
	return params, ok || t.complete
}

// NotePage notes the tools of a result of tools/list, the answer to params. It returns the result without
// the tools whose annotations break the rules, and which rule each of them breaks.
func (t *Tools) NotePage(params, result json.RawMessage) (valid json.RawMessage, broken map[string]error) {
	hash := maphash.Bytes(seed, result) ^ maphash.Bytes(seed, params)
	t.mu.Lock()
	defer t.mu.Unlock()
	if hash == t.noted {
		return result, nil
	}
	broken = make(map[string]error)
	list, _ := rawjson.Member(result, "tools")
	if t.mirrored == nil {
		t.mirrored = make(map[string][]Param)
	}
	kept := rawjson.Filter(list, func(tool json.RawMessage) bool {
		name, _ := rawjson.MemberText(tool, "name")
		schema, _ := rawjson.Member(tool, "inputSchema")
		mirrored, err := Params(schema)
		switch {
		case err != nil:
			broken[name] = err
		case len(mirrored) == 0:
			delete(t.mirrored, name)
		case len(t.mirrored) < maxTools:
			t.mirrored[name] = mirrored
		}
		return err == nil
	})
	_, later := rawjson.Member(params, "cursor")
	t.complete = t.complete || !later && pages.Next(result) == nil
	if len(broken) == 0 {
		t.noted = hash
		return result, nil
	}
	t.noted = 0 // what is broken is said each time
	return rawjson.ReplaceMember(result, kept, "tools"), broken
}

// List learns all tools, once for all callers that wait for it: ask returns the response to
// a tools/list. List does nothing if it failed just now.
func (t *Tools) List(ask func(params json.RawMessage) (*jsonrpc.Message, error)) {
	_, _, _ = t.listing.Do("", func() (any, error) {
		t.mu.Lock()
		skip := time.Since(t.failed) < listPause
		t.mu.Unlock()
		if !skip {
			complete := t.listPages(ask)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.complete = complete
			if !complete {
				t.failed, t.noted = time.Now(), 0
			}
		}
		return nil, nil
	})
}

// listPages reports whether all pages have come.
func (t *Tools) listPages(ask func(params json.RawMessage) (*jsonrpc.Message, error)) bool {
	for page, err := range pages.Read(maxToolPages, func(params json.RawMessage) (json.RawMessage, error) {
		m, err := ask(params)
		if err != nil {
			return nil, err
		}
		if m.Result() == nil {
			return nil, errNoList
		}
		return m.Result(), nil
	}) {
		if err != nil {
			return false
		}
		t.NotePage(page.Params(), page.Result)
	}
	return true
}

// Forget drops what is known: the list has changed.
func (t *Tools) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mirrored, t.complete, t.noted = nil, false, 0
}

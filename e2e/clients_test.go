package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// client is an MCP client as its users see it. An error that the server sent is
// an *rpcError.
type client interface {
	connect(ctx context.Context) error
	listTools(ctx context.Context) ([]string, error)
	// callTool returns the text of the result.
	callTool(ctx context.Context, name string, args map[string]any) (string, error)
	// callAll calls the tool with all arguments at once.
	callAll(ctx context.Context, name string, args []map[string]any) ([]string, error)
	// progress calls the tool and returns how much progress came. It waits for
	// as much as is wanted, which a client may handle after the answer.
	progress(ctx context.Context, name string, args map[string]any, want int) (int, error)
	// read returns the text of a resource.
	read(ctx context.Context, uri string) (string, error)
	// prompt returns the text of a prompt.
	prompt(ctx context.Context, name string, args map[string]string) (string, error)
	// saw returns what is known of the client's HTTP.
	saw() traffic
	close()
}

// traffic is what a client sent.
type traffic struct {
	// Streams is how many it opened.
	Streams int `json:"streams"`
	// Opening is the method of its first message.
	Opening string `json:"opening"`
}

// transport is a way from a client to the gateway: a path of its own.
type transport string

const (
	overSSE    transport = "sse"        // HTTP+SSE, /sse
	streamable transport = "streamable" // Streamable HTTP, /mcp
)

// opener makes a client that does not connect yet. With a name it declares
// sampling, elicitation and roots, and answers each with the name, if it can.
type opener func(t *testing.T, url string, over transport, name string) client

// kind is one client program over one transport.
type kind struct {
	name string
	over transport
	make opener
	// discovers: it sends server/discover before initialize.
	discovers bool
	// reconnects: it opens a new stream by itself, and does not initialize again.
	reconnects bool
	// oneShot: every step is a process and a connection of its own.
	oneShot bool
	// noStream: it does not open a stream for what comes unasked.
	noStream bool
	// likeAnother: once connected it does what another kind does.
	likeAnother bool
	// answers: it takes requests of the server.
	answers bool
	// noErrorData: it does not show the data of an error.
	noErrorData bool
	// quick: make test has it too.
	quick bool
}

// open makes a client of the kind.
func (k kind) open(t *testing.T, url, name string) client {
	t.Helper()
	return k.make(t, url, k.over, name)
}

// streams is how many streams the client opens for what comes unasked.
func (k kind) streams() int {
	if k.noStream {
		return 0
	}
	return 1
}

// unlike returns the kinds without those that are like another.
func unlike() []kind { return slices.DeleteFunc(kinds(), func(k kind) bool { return k.likeAnother }) }

// kinds returns each client over each transport; without all, one client of each SDK.
func kinds() []kind {
	kinds := []kind{
		{name: "TypeScriptSDK1", over: overSSE, make: openNode("sdk1"), answers: true, reconnects: true, quick: true},
		{name: "TypeScriptClient2", over: overSSE, make: openNode("client2"), answers: true, reconnects: true},
		{name: "TypeScriptClient2Auto", over: overSSE, make: openNode("client2-auto"), answers: true, reconnects: true, discovers: true},
		{name: "Inspector", over: overSSE, make: openInspector("legacy"), oneShot: true},
		{name: "InspectorAuto", over: overSSE, make: openInspector("auto"), oneShot: true, discovers: true},
		{name: "GoSDK", over: overSSE, make: openGoSDK(""), answers: true, discovers: true, quick: true},
		{name: "MCPGo", over: overSSE, make: openMCPGo(false), noErrorData: true},

		{name: "TypeScriptSDK1Streamable", over: streamable, make: openNode("sdk1"), answers: true},
		{name: "TypeScriptClient2Streamable", over: streamable, make: openNode("client2"), answers: true, quick: true},
		{name: "TypeScriptClient2AutoStreamable", over: streamable, make: openNode("client2-auto"), answers: true, discovers: true, likeAnother: true},
		{name: "InspectorStreamable", over: streamable, make: openInspector("legacy"), oneShot: true},
		{name: "InspectorAutoStreamable", over: streamable, make: openInspector("auto"), oneShot: true, discovers: true},
		{name: "GoSDKStreamable", over: streamable, make: openGoSDK("2025-11-25"), answers: true},
		{name: "GoSDKAutoStreamable", over: streamable, make: openGoSDK(""), answers: true, discovers: true, likeAnother: true},
		{name: "MCPGoStreamable", over: streamable, make: openMCPGo(true), answers: true, noErrorData: true},
		{name: "MCPGoAutoStreamable", over: streamable, make: openMCPGo(false), answers: true, noErrorData: true, discovers: true, noStream: true, quick: true},
	}
	return slices.DeleteFunc(kinds, func(k kind) bool { return !all && !k.quick })
}

// forEachClient runs the test once for each kind that the filter lets pass.
func forEachClient(t *testing.T, filter func(kind) bool, test func(t *testing.T, k kind)) {
	t.Helper()
	t.Parallel()
	for _, k := range kinds() {
		if filter(k) {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				test(t, k)
			})
		}
	}
}

func every(kind) bool        { return true }
func lasting(k kind) bool    { return !k.oneShot && !k.likeAnother }
func reconnects(k kind) bool { return k.reconnects }

// within returns a context for one step of a client.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// connect opens a client of the kind and connects it.
func connect(t *testing.T, k kind, url string) client {
	t.Helper()
	c := k.open(t, url, "")
	ssetest.Must(t, c.connect(within(t)))
	return c
}

// mustCall calls a tool that must succeed.
func mustCall(t *testing.T, c client, tool string, args map[string]any) string {
	t.Helper()
	text, err := c.callTool(within(t), tool, args)
	ssetest.Must(t, err)
	return text
}

// wantEcho calls the tool that echoes.
func wantEcho(t *testing.T, c client) {
	t.Helper()
	ssetest.Want(t, "echo", mustCall(t, c, "echo", map[string]any{"message": "hi"}), "hi")
}

// observer is a RoundTripper that looks on.
type observer struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen traffic // guarded by mu
}

func newObserver(t *testing.T) *observer {
	t.Helper()
	return &observer{next: newHTTP(t).Transport}
}

func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		o.note(func(seen *traffic) { seen.Streams++ })
	} else if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close() // it was read to its end
		req.Body = io.NopCloser(bytes.NewReader(body))
		var m struct{ Method string }
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		o.note(func(seen *traffic) {
			if seen.Opening == "" {
				seen.Opening = m.Method
			}
		})
	}
	return o.next.RoundTrip(req)
}

func (o *observer) note(change func(*traffic)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.seen)
}

func (o *observer) saw() traffic {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

// outcome is what tests look at in the result of any request.
type outcome struct {
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Content  []textPart `json:"content"`
	Contents []textPart `json:"contents"`
	Messages []struct {
		Content textPart `json:"content"`
	} `json:"messages"`
	IsError bool `json:"isError"`
}

type textPart struct {
	Text string `json:"text"`
}

// outcomeOf reads the result of a client. One that a tool calls an error is one.
func outcomeOf(from any, err error) (r outcome, _ error) {
	if err != nil {
		return r, err
	}
	raw, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if r.IsError {
		err = errors.New(r.text())
	}
	return r, err
}

// textOf returns the texts in the result of a client.
func textOf(from any, err error) (string, error) {
	r, err := outcomeOf(from, err)
	if err != nil {
		return "", err
	}
	return r.text(), nil
}

// toolsOf returns the names of the tools in the result of a client.
func toolsOf(from any, err error) ([]string, error) {
	r, err := outcomeOf(from, err)
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names, err
}

func (r outcome) text() (all string) {
	for _, m := range r.Messages {
		r.Contents = append(r.Contents, m.Content)
	}
	for _, part := range slices.Concat(r.Content, r.Contents) {
		all += part.Text
	}
	return all
}

// callEach is callAll for clients that are called from goroutines.
func callEach(ctx context.Context, c client, name string, args []map[string]any) ([]string, error) {
	texts, errs := make([]string, len(args)), make([]error, len(args))
	var wg sync.WaitGroup
	for i, a := range args {
		wg.Go(func() { texts[i], errs[i] = c.callTool(ctx, name, a) })
	}
	wg.Wait()
	return texts, errors.Join(errs...)
}

// steps counts the progress that a client hands to its handler.
type steps chan struct{}

func newSteps() steps { return make(steps, 1000) }

func (s steps) add() {
	select {
	case s <- struct{}{}:
	default: // more than any test asks for
	}
}

// await returns how many there are, as soon as there are as many as wanted.
func (s steps) await(ctx context.Context, want int) (int, error) {
	for n := 0; ; n++ {
		if n >= want {
			return n + len(s), nil
		}
		select {
		case <-s:
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
}

//lint:file-ignore SA1019 SEP-2577 deprecates sampling, roots and logging; clients use them as long as they exist.

package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The kinds of handler that the tests compare.
const (
	theirs = "mcp.NewSSEHandler"
	ours   = "gosdk.NewSSEHandler"
)

type pathKey struct{}

// world is a server behind one of the handlers.
type world struct {
	t      *testing.T
	kind   string
	server *mcp.Server
	url    string
	saw    *ssetest.Journal
	http   *http.Client
	gw     *gateway.Gateway // nil with theirs
	cut    func()           // cuts all TCP connections
}

func newWorld(t *testing.T, kind string, options mcp.ServerOptions) *world {
	w := &world{t: t, kind: kind, saw: ssetest.NewJournal(t)}
	w.server = everything(w.saw, options)
	// On a busy machine the client's initialize may come after the gateway's own.
	w.serve(func(*http.Request) *mcp.Server { return w.server }, &gateway.Options{NoAutoInitialize: true})
	return w
}

// serve mounts the handler at one exact pattern, behind a middleware, until the end of the
// test.
func (w *world) serve(get func(*http.Request) *mcp.Server, opts *gateway.Options) {
	mux := http.NewServeMux()
	if w.kind == ours {
		w.gw = gosdk.NewSSEHandler(get, opts)
		mux.Handle("/a/sse", remembering(w.gw))
	} else {
		mux.Handle("/a/sse", remembering(mcp.NewSSEHandler(get, nil)))
	}
	srv := httptest.NewServer(mux)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	w.cut = srv.CloseClientConnections
	w.url, w.http = srv.URL+"/a/sse", &http.Client{Transport: transport}
	w.t.Cleanup(func() {
		if w.gw != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = w.gw.Shutdown(ctx) // cuts what a test has left open
		}
		transport.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
}

// remembering is a middleware that adds a value to the context.
func remembering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), pathKey{}, r.URL.Path)))
	})
}

// connect connects a client of go-sdk that notes what it sees under its name.
func (w *world) connect(name string) *mcp.ClientSession {
	w.t.Helper()
	note := func(format string, args ...any) { w.saw.Add(name+": "+format, args...) }
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "0.1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(ctx context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			note("asked to sample %s", asJSON(r.Params))
			if r.Params.SystemPrompt == "hang" {
				<-ctx.Done()
				note("sampling was cancelled")
				return nil, ctx.Err()
			}
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "because " + name}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			note("asked to elicit %s", asJSON(r.Params))
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": name}}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { note("log %s", asJSON(r.Params)) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			note("progress %s", asJSON(r.Params))
		},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { note("tools have changed") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { note("prompts have changed") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { note("resources have changed") },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			note("updated %s", asJSON(r.Params))
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///" + name, Name: name})
	s, err := client.Connect(context.Background(), &mcp.SSEClientTransport{Endpoint: w.url, HTTPClient: w.http}, nil)
	if err != nil {
		w.t.Fatalf("%s: connect: %v", w.kind, err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	w.saw.Await(1, "server: initialized by "+name)
	if name == "adder" {
		client.AddRoots(&mcp.Root{URI: "file:///more"})
	}
	return s
}

// call calls a tool and notes its result.
func (w *world) call(s *mcp.ClientSession, tool, args string) {
	ctx, cancel := context.WithTimeout(context.Background(), ssetest.Patience)
	defer cancel()
	params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)}
	if tool == "work" {
		params.SetProgressToken("of " + args)
	}
	result, err := s.CallTool(ctx, params)
	w.result(tool+" "+args, result, err)
}

// result notes the result of a call.
func (w *world) result(of string, result any, err error) {
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		w.saw.Add("result of %s: code %d, %q, data %s", of, e.Code, e.Message, e.Data)
		return
	}
	w.saw.Add("result of %s: %s, error %v", of, asJSON(result), err)
}

// feature is a scenario that must look the same through both handlers.
type feature struct {
	name    string
	options mcp.ServerOptions
	play    func(w *world)
}

// TestFeaturesAreThoseOfTheSDK plays each scenario with the client of go-sdk against
// go-sdk's own handler and against ours, and compares all that the client and the server
// saw. Differences that are ours by design do not show here: the client ignores the events connection
// and mcp-response, the ids and progress tokens at the server are the gateway's, and the
// gateway answers ping and server/discover. TestDifferences has what a client can see.
func TestFeaturesAreThoseOfTheSDK(t *testing.T) {
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			want := journalOf(t, theirs, f)
			ssetest.WantLines(t, journalOf(t, ours, f), want)
		})
	}
}

func journalOf(t *testing.T, kind string, f feature) (lines []string) {
	t.Run(kind, func(t *testing.T) {
		w := newWorld(t, kind, f.options)
		f.play(w)
		lines = w.saw.Lines()
	})
	if len(lines) < 2 {
		t.Errorf("%s: nobody saw anything: %q", kind, lines)
	}
	return lines
}

var features = []feature{
	{name: "initialize", play: func(w *world) {
		s := w.connect("ada")
		w.saw.Add("ada: was told %s", asJSON(s.InitializeResult()))
	}},
	{name: "tools", play: func(w *world) {
		s := w.connect("ada")
		for tool, err := range s.Tools(context.Background(), nil) {
			w.result("tools", tool, err)
		}
		w.call(s, "greet", `{"name":"Ada <&> \u2028"}`)
		w.call(s, "echo", `{"a":[1,2.50,"x\ny"],"n":1e2}`)
	}},
	{name: "errors of tools", play: func(w *world) {
		s := w.connect("ada")
		for _, tool := range []string{"fail", "refuse", "break", "missing"} {
			w.call(s, tool, `{}`)
		}
		w.call(s, "greet", `{"name":5}`)
		w.call(s, "greet", `{"nam":"x"}`)
	}},
	{name: "prompts, resources and completion", play: func(w *world) {
		s, ctx := w.connect("ada"), context.Background()
		prompts, err := s.ListPrompts(ctx, nil)
		w.result("prompts", prompts, err)
		prompt, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "poem", Arguments: map[string]string{"about": "tests"}})
		w.result("prompt", prompt, err)
		_, err = s.GetPrompt(ctx, &mcp.GetPromptParams{Name: "missing"})
		w.result("missing prompt", nil, err)
		resources, err := s.ListResources(ctx, nil)
		w.result("resources", resources, err)
		templates, err := s.ListResourceTemplates(ctx, nil)
		w.result("templates", templates, err)
		for _, uri := range []string{"note://a", "note://other", "note://gone", "file:///x"} {
			read, err := s.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
			w.result("read "+uri, read, err)
		}
		done, err := s.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "poem"},
			Argument: mcp.CompleteParamsArgument{Name: "about", Value: "A"}})
		w.result("completion", done, err)
	}},
	{name: "logging", play: func(w *world) {
		s := w.connect("ada")
		w.call(s, "log", `{"before":"setLevel"}`)
		for _, level := range []mcp.LoggingLevel{"warning", "debug"} {
			ssetest.Want(w.t, "error", s.SetLoggingLevel(context.Background(), &mcp.SetLoggingLevelParams{Level: level}), nil)
			w.call(s, "log", `{"at":"`+string(level)+`"}`)
		}
		w.saw.Await(6, "ada: log")
	}},
	{name: "roots", play: func(w *world) {
		s := w.connect("adder")
		w.saw.Await(1, "server: roots have changed")
		w.call(s, "roots", `{}`)
	}},
	{name: "the client cancels", play: func(w *world) {
		s := w.connect("ada")
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			w.saw.Await(1, "server: waits")
			cancel()
		}()
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		w.saw.Add("ada: cancelled %t", errors.Is(err, context.Canceled))
		w.saw.Await(1, "server: was told to stop")
		w.call(s, "greet", `{"name":"after"}`)
	}},
	{name: "the server cancels", play: func(w *world) {
		w.call(w.connect("ada"), "impatient", `{}`)
		w.saw.Await(1, "ada: sampling was cancelled")
	}},
	{name: "lists change", play: func(w *world) {
		one, _ := w.connect("one"), w.connect("two")
		w.call(one, "grow", `{}`)
		for _, name := range []string{"one", "two"} {
			for _, list := range []string{"tools", "prompts", "resources"} {
				w.saw.Await(1, name+": "+list+" have changed")
			}
		}
	}},
	{name: "subscriptions", play: func(w *world) {
		s, _, ctx := w.connect("ada"), w.connect("bob"), context.Background()
		for _, uri := range []string{"note://a", "note://b"} {
			ssetest.Want(w.t, "error", s.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}), nil)
		}
		w.call(s, "touch", `{"n":1}`)
		w.saw.Await(2, "ada: updated")
		ssetest.Want(w.t, "error", s.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "note://b"}), nil)
		w.call(s, "touch", `{"n":2}`)
		w.saw.Await(3, "ada: updated")
	}},
	{name: "several clients", play: func(w *world) {
		var clients sync.WaitGroup
		for _, name := range []string{"ada", "bob", "cyd", "dan"} {
			s := w.connect(name)
			clients.Go(func() {
				for n := range 5 {
					w.call(s, "work", fmt.Sprintf(`{"%s":%d}`, name, n))
					w.call(s, "elicit", fmt.Sprintf(`{"%s":%d}`, name, n))
				}
			})
		}
		clients.Wait()
		for _, name := range []string{"ada", "bob", "cyd", "dan"} {
			w.saw.Await(25, name+": progress")
		}
	}},
	{name: "sessions of the server", play: func(w *world) {
		one := w.connect("one")
		w.connect("two")
		for s := range w.server.Sessions() {
			w.saw.Add("server: has a session with %s", s.InitializeParams().ClientInfo.Name)
		}
		_ = one.Close()
		w.awaitSessions(1)
		for s := range w.server.Sessions() {
			w.saw.Add("server: keeps a session with %s", s.InitializeParams().ClientInfo.Name)
		}
	}},
	{name: "the server closes the session", play: func(w *world) {
		s := w.connect("ada")
		w.call(s, "greet", `{"name":"Ada"}`)
		for session := range w.server.Sessions() {
			w.saw.Add("server: closes, %v", session.Close())
		}
		w.saw.Add("ada: ended with %v", s.Wait())
		w.awaitSessions(0)
	}},
	{name: "middleware of the server", play: func(w *world) {
		note := func(what string) mcp.Middleware {
			return func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
					if method != "server/discover" { // the gateway answers it: this transport has none
						w.saw.Add("server: %s %s", what, method)
					}
					return next(ctx, method, r)
				}
			}
		}
		w.server.AddReceivingMiddleware(note("receives"))
		w.server.AddSendingMiddleware(note("sends"))
		w.call(w.connect("ada"), "sample", `{}`)
	}},
}

// awaitSessions waits until the server has n sessions.
func (w *world) awaitSessions(n int) { awaitSessions(w.t, w.server, n) }

func awaitSessions(t testing.TB, server *mcp.Server, n int) {
	t.Helper()
	eventually(t, func() error {
		if open := len(slices.Collect(server.Sessions())); open != n {
			return fmt.Errorf("the server has %d sessions, want %d", open, n)
		}
		return nil
	})
}

// eventually waits until what other goroutines do is true.
func eventually(t testing.TB, holds func() error) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(ssetest.Patience); ; <-tick.C {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Error(err)
			return
		}
	}
}

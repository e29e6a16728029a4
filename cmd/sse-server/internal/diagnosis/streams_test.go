package diagnosis_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// cutting is a proxy that cuts the stream of a GET for each value of cut, in good order or not.
func cutting(t *testing.T, to string, inGoodOrder bool, cut <-chan struct{}) string {
	t.Helper()
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, FlushInterval: -1, ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			proxy.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() { // ends with ctx
			select {
			case <-cut:
				cancel()
			case <-ctx.Done():
			}
		}()
		defer func() {
			if aborted := recover(); aborted != nil && !inGoodOrder {
				panic(aborted)
			}
		}()
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
}

// A stream that is cut while it is silent is found, over both transports, and one that stays is told.
func TestSilentStreams(t *testing.T) {
	t.Parallel()
	gw := serve(t, newGateway(t, gateway.Options{}))
	for inGoodOrder, want := range map[bool][]string{
		false: {"Streamable HTTP: a silent stream: failed: it was cut after ", "proxy_read_timeout", "HTTP+SSE: a silent stream: failed: it was cut after ", "proxy_read_timeout"},
		true:  {"Streamable HTTP: a silent stream: ok: it ended after ", " in good order: clients open it again", "HTTP+SSE: a silent stream: failed: it was cut after "},
	} {
		cut, lines := make(chan struct{}), ""
		works := diagnosis.Run(t.Context(), diagnosis.Options{URL: cutting(t, gw, inGoodOrder, cut) + "/mcp", Wait: time.Minute, Patience: time.Minute, Grace: time.Minute}, func(s diagnosis.Step) {
			if s.Name == "Streamable HTTP: first event" || s.Name == "HTTP+SSE: a call" {
				cut <- struct{}{}
			}
			lines += fmt.Sprint(s.Name, ": ", s.Result, ": ", s.Detail, " -> ", s.Remedy, "\n")
		})
		if works {
			t.Error("a client can work behind a proxy that cuts streams")
		}
		wantLines(t, lines, want...)
	}

	sdk := greeter()
	stateless := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true})
	forgets := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"id":3`) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		stateless.ServeHTTP(w, r)
	})
	for name, test := range map[string]struct {
		url  string
		want []string
	}{
		"stays":     {gw, []string{"Streamable HTTP: a silent stream: ok: it stayed open for 1ms, with 0 heartbeats", "HTTP+SSE: a silent stream: ok: it stayed open for 1ms"}},
		"no stream": {serve(t, stateless), []string{"Streamable HTTP: a silent stream: ok: there is no stream; after 1ms without a request a call is answered: 1 tool"}},
		"forgets":   {serve(t, forgets), []string{"Streamable HTTP: a silent stream: failed: the session of before is not known"}},
	} {
		got, works := look(t, diagnosis.Options{URL: test.url + "/mcp", Wait: time.Millisecond})
		if works == strings.Contains(test.want[0], "failed") {
			t.Errorf("%s: a client can work there: %v", name, works)
		}
		wantLines(t, name+"\n"+got, test.want...)
	}
}

// How soon events come through is told over Streamable HTTP, too.
func TestFirstEvent(t *testing.T) {
	t.Parallel()
	sdk := greeter()
	streaming := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	stateless := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true})
	headAlone := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Contains(r.Header.Get("Accept"), "json") {
			<-r.Context().Done()
		}
	})
	for name, test := range map[string]struct {
		url             string
		patience, grace time.Duration
		want            []string
	}{
		"of an answer": {serve(t, streaming), 0, 0, []string{"Streamable HTTP: first event: ok: an answer that is a stream had its first event after ", " ms\n"}},
		"no stream":    {held(t, serve(t, streaming)), 3 * time.Second, 0, []string{"Streamable HTTP: GET: failed: the stream did not open in 3s", "Streamable HTTP: first event: not tried: the stream did not open\n"}},
		"collected":    {held(t, serve(t, stateless)), 0, 0, []string{"Streamable HTTP: first event: ok: an answer", "; it came with its length, so the server or a proxy has collected"}},
		"none":         {serve(t, server.NewStreamableHTTPServer(greeterOfMCPGo())), 0, time.Millisecond, []string{"Streamable HTTP: first event: not served: the server answers as JSON, and has sent nothing on its stream"}},
		"held back":    {serve(t, headAlone), 3 * time.Second, 0, []string{"initialize: failed: the stream is open, but no event came in time -> a proxy between holds events back"}},
	} {
		got, _ := look(t, diagnosis.Options{URL: test.url + "/mcp", Patience: test.patience, Grace: test.grace})
		wantLines(t, name+"\n"+got, test.want...)
	}
}

// The end of the context ends a diagnosis at once, and the step at which that was is the last.
func TestStopped(t *testing.T) {
	gw := serve(t, newGateway(t, gateway.Options{}))
	asked := make(chan struct{}, 1)
	hanging := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	for at, test := range map[string]struct{ url, after string }{
		"Streamable HTTP: a silent stream": {gw, "Streamable HTTP: first event"},
		"HTTP+SSE: a silent stream":        {gw, "HTTP+SSE: a call"},
		"Streamable HTTP: initialize":      {gw, "authentication"},
		"HTTP":                             {hanging, ""},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { // ends with ctx
			select {
			case <-asked:
				cancel()
			case <-ctx.Done():
			}
		}()
		wait := time.Hour
		if at == "HTTP+SSE: a silent stream" {
			wait = time.Millisecond
		}
		var last diagnosis.Step
		o := diagnosis.Options{URL: test.url + "/mcp", Wait: wait, Patience: time.Hour, Grace: time.Hour}
		works := diagnosis.Run(ctx, o, func(s diagnosis.Step) {
			if last = s; s.Name == test.after {
				cancel()
			}
		})
		if works || last.Name != at || last.Result != diagnosis.Stopped || last.Remedy != "" {
			t.Errorf("stopped at %s: works: %v, last step %+v", at, works, last)
		}
	}
}

package load_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

// page is a server that answers each GET with the same.
func page(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, body)
	}
}

func TestServersThatCannotBeTested(t *testing.T) {
	const sse = "text/event-stream"
	for name, c := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"NotFound":          {http.NotFoundHandler(), "404"},
		"NoStream":          {page("text/html", "hello"), "no event stream"},
		"NoEndpoint":        {page(sse, "data: hello\n\n"), "no endpoint event"},
		"AnotherOrigin":     {page(sse, "event: endpoint\ndata: http://example.com/post\n\n"), "another origin"},
		"BadEndpoint":       {page(sse, "event: endpoint\ndata: http://%zz\n\n"), "endpoint"},
		"EndlessLine":       {page(sse, "data: "+strings.Repeat("x", 17<<20)), "event over the size limit"},
		"EndlessEvent":      {page(sse, strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17)), "event over the size limit"},
		"StreamEnds":        {page(sse, "event: endpoint\ndata: /post\n\n"), "initialize"},
		"NoEcho":            {&fakeServer{tools: `{"tools":[{"name":"other"}]}`}, `there is no tool echo among ["other"]`},
		"NoStringArgument":  {&fakeServer{tools: `{"tools":[{"name":"echo","inputSchema":{"properties":{"n":{"type":"integer"}}}}]}`}, "0 string arguments"},
		"TwoStringArgument": {&fakeServer{tools: `{"tools":[{"name":"echo","inputSchema":{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}}]}`}, "2 string arguments"},
		"WrongArgument":     {&fakeServer{tools: `{"tools":[{"name":"echo","inputSchema":{"properties":{"a":{"type":"string"}}}}]}`}, "does not return its argument a"},
		"ToolList":          {&fakeServer{tools: `{"tools":1}`}, "list tools"},
		"EndlessToolList":   {&fakeServer{tools: `{"tools":[],"nextCursor":"more"}`}, "more than 100 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.handler)
			defer srv.Close()
			r, err := load.Run(t.Context(), srv.URL+"/sse", quick())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run = %+v, %v, want an error with %q", r, err, c.want)
			}
		})
	}
}

func TestBadTargetsAndOptions(t *testing.T) {
	const example, target = "such as http://127.0.0.1:8080/sse", "http://127.0.0.1:1/sse"
	for _, c := range []struct {
		target string
		opts   load.Options
		want   string
	}{
		{"://", load.Options{}, example},
		{"127.0.0.1:1/sse", load.Options{}, example},
		{"ftp://127.0.0.1/sse", load.Options{}, example},
		{target, load.Options{}, "refused"},
		{target, load.Options{Rate: -1}, "not be negative"},
		{target, load.Options{ProgressArgument: "x"}, "needs its tool"},
	} {
		if r, err := load.Run(t.Context(), c.target, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %+v: got %+v, %v, want an error with %q", c.target, c.opts, r, err, c.want)
		}
	}
}

func TestConnectMeasuresTheInitialization(t *testing.T) {
	s := (&fakeServer{both: true}).serve(t)
	for _, capabilities := range []string{"", "{}", `{"roots":{}}`} {
		o, err := load.Connect(t.Context(), s.url, capabilities, quick())
		if err != nil || o.Endpoint <= 0 || o.Ready < o.Endpoint {
			t.Errorf("connect with %q = %+v, %v, want two times", capabilities, o, err)
		}
	}
}

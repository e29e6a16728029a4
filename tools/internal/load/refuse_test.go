package load_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	const example = "such as http://127.0.0.1:8080/sse"
	for name, c := range map[string]struct {
		target string
		opts   load.Options
		want   string
	}{
		"NoURL":            {"://", load.Options{}, example},
		"NoScheme":         {"127.0.0.1:1/sse", load.Options{}, example},
		"NoHTTP":           {"ftp://127.0.0.1/sse", load.Options{}, example},
		"NoHost":           {"http:///sse", load.Options{}, example},
		"NobodyListens":    {"http://127.0.0.1:1/sse", load.Options{}, "refused"},
		"Clients":          {"http://127.0.0.1:1/sse", load.Options{Clients: -1}, "at least 1"},
		"Rate":             {"http://127.0.0.1:1/sse", load.Options{Rate: -1}, "not be negative"},
		"ProgressArgument": {"http://127.0.0.1:1/sse", load.Options{ProgressArgument: "x"}, "needs its tool"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := load.Run(t.Context(), c.target, c.opts)
			if err == nil {
				t.Fatalf("run = %+v, want an error", r)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// The header is on the GET and on each POST.
func TestHeaderIsSent(t *testing.T) {
	s := &fakeServer{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	opts := quick()
	if _, err := load.Run(t.Context(), srv.URL+"/sse", opts); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("error without the header = %v, want 401", err)
	}
	opts.Header = http.Header{"Authorization": {"Bearer x"}}
	if r := mustRun(t, srv.URL+"/sse", opts); r.Verdict() != load.Clean {
		t.Errorf("report = %+v, want clean", r)
	}
}

func TestTLS(t *testing.T) {
	srv := httptest.NewTLSServer(&fakeServer{})
	defer srv.Close()
	trusted := filepath.Join(t.TempDir(), "roots.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(trusted, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", trusted) // read at the first use, which is here
	if r := mustRun(t, srv.URL+"/sse", quick()); r.Verdict() != load.Clean {
		t.Errorf("report = %+v, want clean", r)
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

func TestConnectFailsWithoutAnAnnouncement(t *testing.T) {
	const endpoint = "event: endpoint\ndata: /post\n\n"
	for name, body := range map[string]string{
		"None":  endpoint + "event: message\ndata: {}\n\n",
		"Error": endpoint + `event: mcp-response` + "\n" + `data: {"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"down"}}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(page("text/event-stream", body))
			defer srv.Close()
			if o, err := load.Connect(t.Context(), srv.URL, "", quick()); err == nil {
				t.Errorf("connect = %+v, want an error", o)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	values := []time.Duration{5, 1, 3, 2, 4}
	for q, want := range map[float64]time.Duration{0: 1, 0.2: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := load.Percentile(values, q); got != want {
			t.Errorf("Percentile(%v) = %v, want %v", q, got, want)
		}
	}
	if got := load.Percentile(nil, 0.5); got != 0 {
		t.Errorf("Percentile of nothing = %v, want 0", got)
	}
}

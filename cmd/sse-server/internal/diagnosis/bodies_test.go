package diagnosis_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/diagnosis"
)

// An answer that does not end is told as that, and not as one of something else than MCP.
func TestBodiesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	cuts := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, test := range map[string]struct {
		then http.HandlerFunc
		want string
	}{
		"hangs":   {hangs, "initialize: failed: the body of the answer does not end: 16 bytes of it came in time -> see the log of the server, and whether a proxy holds the rest back"},
		"cut off": {cuts, "initialize: failed: the body of the answer is cut off after 16 bytes: unexpected EOF -> see the log of the server, and whether a proxy cuts answers"},
	} {
		for path, transport := range map[string]string{"/mcp": "Streamable HTTP: ", "/sse": "HTTP+SSE: "} {
			at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				switch isFirst := len(body) > 0 && !strings.Contains(string(body), `"initialize"`); {
				case isFirst:
					w.WriteHeader(http.StatusAccepted)
				case r.Method == http.MethodGet:
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "event: endpoint\ndata: /post\n\n")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				case r.URL.Path == "/sse":
					w.WriteHeader(http.StatusMethodNotAllowed)
				default:
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"jsonrpc":"2.0"`)
					_ = http.NewResponseController(w).Flush()
					test.then(w, r)
				}
			}))
			got, works := look(t, diagnosis.Options{URL: at + path, Patience: 3 * time.Second})
			if works {
				t.Errorf("%s: a client can work there", name)
			}
			wantLines(t, name+"\n"+got, transport+test.want)
		}
	}
}

// An interrupt while the body of the first answer comes is told at that step.
func TestStoppedInABody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNotFound)
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	}))
	var last diagnosis.Step
	diagnosis.Run(ctx, diagnosis.Options{URL: at + "/mcp", Patience: time.Hour}, func(s diagnosis.Step) { last = s })
	if last.Name != "HTTP" || last.Result != diagnosis.Stopped {
		t.Errorf("stopped at %+v, want HTTP", last)
	}
}

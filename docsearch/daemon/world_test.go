package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker")) // bleve's, for ever
}

// patience bounds every wait for something that should come soon.
const patience = time.Minute

// running is a daemon that serves.
type running struct {
	*testing.T
	state  string
	docs   string
	base   string
	token  string
	end    func() error // ends the daemon and returns what Run did
	client *http.Client
	routes routers.Router
}

// start starts a daemon with a folder of a few documents.
func start(t *testing.T, opts daemon.Options) *running {
	t.Helper()
	r := &running{T: t, token: opts.Token, docs: filepath.Join(t.TempDir(), "docs"), client: &http.Client{Transport: &http.Transport{}}}
	if err := os.Mkdir(r.docs, 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("river.md", "# The river\n\nThe hippopotamus bathes in the river.\n")
	r.write("hill.txt", "A goat stands on the hill.\n")
	r.docs, _ = filepath.EvalSymlinks(r.docs) // it exists
	if opts.StateDir == "" {
		opts.StateDir = filepath.Join(t.TempDir(), "state")
	}
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Folders == nil {
		opts.Folders = []string{r.docs}
	}
	r.state = opts.StateDir
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	document.Servers = nil // match at any address
	if r.routes, err = gorillamux.NewRouter(document); err != nil {
		t.Fatal(err)
	}
	r.run(opts)
	return r
}

// run runs the daemon until the end of the test, or until end.
func (r *running) run(opts daemon.Options) {
	r.Helper()
	d, err := daemon.New(opts)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var result error
	stopped := false
	r.end = func() error {
		if !stopped {
			stopped = true
			cancel()
			r.client.CloseIdleConnections()
			result = <-ended
		}
		return result
	}
	r.Cleanup(func() {
		if err := r.end(); err != nil && !errors.Is(err, discovery.ErrLost) {
			r.Errorf("Run: %v", err)
		}
	})
	r.eventually("the daemon serves", func() bool {
		record, err := discovery.Read(opts.StateDir)
		r.base = "http://" + record.Address
		if err != nil {
			return false
		}
		response, err := r.client.Get(r.base + "/health")
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	})
}

func (r *running) write(name, text string) {
	r.Helper()
	file := filepath.Join(r.docs, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// request sends a request with a JSON body, unless body is nil, and returns the
// response and its body, which must be as the OpenAPI document says.
func (r *running) request(method, path string, body any, header ...string) (*http.Response, []byte) {
	r.Helper()
	var payload io.Reader
	if text, ok := body.(string); ok {
		payload = bytes.NewReader([]byte(text))
	} else if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		payload = bytes.NewReader(data)
	}
	request, err := http.NewRequest(method, r.base+path, payload)
	if err != nil {
		r.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	for n := 0; n+1 < len(header); n += 2 {
		request.Header.Set(header[n], header[n+1])
		if header[n] == "Host" {
			request.Host = header[n+1]
		}
	}
	response, err := r.client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	r.conforms(request, response, data)
	return response, data
}

// conforms checks a response against the OpenAPI document.
func (r *running) conforms(request *http.Request, response *http.Response, body []byte) {
	r.Helper()
	route, params, err := r.routes.FindRoute(request)
	if err != nil {
		var refused api.ErrorBody
		if json.Unmarshal(body, &refused) != nil || refused.Error.Code == "" {
			r.Errorf("%s %s, which is not in the document: %d %s", request.Method, request.URL, response.StatusCode, body)
		}
		return
	}
	input := &openapi3filter.RequestValidationInput{Request: request, Route: route, PathParams: params}
	check := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: response.StatusCode, Header: response.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	check.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(context.Background(), check); err != nil {
		r.Errorf("%s %s: not as the OpenAPI document says: %v", request.Method, request.URL, err)
	}
}

// get decodes the answer to a request, which must succeed.
func (r *running) get(method, path string, body, into any) {
	r.Helper()
	response, data := r.request(method, path, body)
	if response.StatusCode != http.StatusOK {
		r.Fatalf("%s %s: %d %s", method, path, response.StatusCode, data)
	}
	if err := json.Unmarshal(data, into); err != nil {
		r.Fatal(err)
	}
}

// refused returns the status and the code of a request that must fail.
func (r *running) refused(method, path string, body any, header ...string) string {
	r.Helper()
	response, data := r.request(method, path, body, header...)
	var refused api.ErrorBody
	if err := json.Unmarshal(data, &refused); err != nil || refused.Error.Message == "" {
		r.Fatalf("%s %s: %d %s, want an error", method, path, response.StatusCode, data)
	}
	return fmt.Sprint(response.StatusCode, " ", refused.Error.Code)
}

// folderPath is the path of a folder in the API.
func folderPath(folder, rest string) string {
	return "/api/v1/folders/" + url.PathEscape(folder) + rest
}

// search returns the names of the files that a search finds.
func (r *running) search(query string) (found []string) {
	r.Helper()
	var response api.SearchResponse
	r.get("POST", "/api/v1/search", api.SearchRequest{Query: query}, &response)
	for _, result := range response.Results {
		name, err := filepath.Rel(result.Folder, result.Path)
		if err != nil {
			r.Fatal(err)
		}
		found = append(found, name)
	}
	return found
}

// indexed waits until nothing is left to index.
func (r *running) indexed() {
	r.Helper()
	r.eventually("the folders are indexed", func() bool {
		var health api.Health
		r.get("GET", "/health", nil, &health)
		return health.Status != api.StatusIndexing
	})
}

// finds waits until a search finds exactly these files.
func (r *running) finds(query string, want ...string) {
	r.Helper()
	r.eventually(fmt.Sprintf("%q finds %v", query, want), func() bool { return fmt.Sprint(r.search(query)) == fmt.Sprint(want) })
}

func (r *running) eventually(what string, condition func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			r.Fatalf("after %v not true: %s", patience, what)
		}
	}
}

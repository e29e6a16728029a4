package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon/internal/folders"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// service answers the requests of the REST API.
type service struct {
	daemon  *Daemon
	index   *index.Index
	folders *folders.Set
	handler http.Handler
	places  chan struct{} // one for each search that runs or waits

	active atomic.Int64 // requests that count as use, in flight
	used   atomic.Int64 // when the last one ended, in Unix nanoseconds
}

func newService(d *Daemon, x *index.Index, set *folders.Set) *service {
	s := &service{daemon: d, index: x, folders: set, places: make(chan struct{}, maxSearches)}
	s.used.Store(time.Now().UnixNano())
	mux := http.NewServeMux()
	methods := map[string][]string{"/openapi.yaml": {"GET"}} // by path
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /health":                                s.getHealth,
		"GET /api/v1/server/info":                    s.getInfo,
		"GET /api/v1/folders":                        s.getFolders,
		"POST /api/v1/folders":                       s.postFolder,
		"DELETE /api/v1/folders/{path}":              s.deleteFolder,
		"POST /api/v1/search":                        s.search,
		"POST /api/v1/search_content":                s.searchContent,
		"POST /api/v1/folders/{path}/search":         s.search,
		"POST /api/v1/folders/{path}/search_content": s.searchContent,
		"GET /api/v1/folders/{path}/documents":       s.getDocuments,
		"GET /api/v1/folders/{path}/documents/{id}":  s.getDocument,
		"GET /api/v1/documents/{id}":                 s.getDocument,
	} {
		mux.HandleFunc(pattern, s.answer(handle))
		method, path, _ := strings.Cut(pattern, " ")
		methods[path] = append(methods[path], method)
	}
	for path, allowed := range methods {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			fail(w, http.StatusMethodNotAllowed, api.CodeMethod,
				r.Method+" is not a method of this path; GET /openapi.yaml describes the API")
		})
	}
	mux.HandleFunc("GET /openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(api.OpenAPI) // the client has gone
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, api.CodeNotFound, "the API has no such path; GET /openapi.yaml describes it")
	})
	s.handler = guard(d.opts.Token, mux)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// idleFor returns for how long nobody has used the daemon.
func (s *service) idleFor() time.Duration {
	if s.active.Load() > 0 {
		return 0
	}
	return time.Since(time.Unix(0, s.used.Load()))
}

// answer makes a handler of a function that returns what to answer in JSON.
func (s *service) answer(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" { // looks at which do not keep an idle daemon from ending
			s.active.Add(1)
			defer func() {
				s.used.Store(time.Now().UnixNano())
				s.active.Add(-1)
			}()
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		result, err := handle(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		reply(w, http.StatusOK, result)
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone
}

func fail(w http.ResponseWriter, status int, code, message string) {
	reply(w, status, api.ErrorBody{Error: api.Error{Code: code, Message: message}})
}

// refusal is an error that a handler answers with as it is.
type refusal struct {
	status  int
	code    string
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, code, format string, args ...any) error {
	return &refusal{status, code, fmt.Sprintf(format, args...)}
}

// refuse answers with an error.
func (s *service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody waits for the answer
	}
	if errors.Is(err, index.ErrCorrupt) {
		s.folders.Report(err)
		fail(w, http.StatusServiceUnavailable, api.CodeStopping,
			"the index cannot be read and is opened again; repeat the request")
		return
	}
	status, code := classify(err)
	if status == http.StatusInternalServerError {
		s.daemon.log.Error("request failed", "path", r.URL.Path, "err", err)
	}
	fail(w, status, code, err.Error())
}

// classify returns the status and code of an error.
func classify(err error) (int, string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, r.code
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge, api.CodeTooLarge
	}
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{index.ErrNoFolder, http.StatusNotFound, api.CodeFolderNotFound},
		{folders.ErrInvalid, http.StatusBadRequest, api.CodeBadRequest},
		{index.ErrNoDocument, http.StatusNotFound, api.CodeDocumentNotFound},
		{index.ErrCursor, http.StatusBadRequest, api.CodeBadRequest},
		{index.ErrQuery, http.StatusBadRequest, api.CodeBadRequest},
		{index.ErrDiskFull, http.StatusInsufficientStorage, api.CodeDiskFull},
		{index.ErrClosed, http.StatusServiceUnavailable, api.CodeStopping},
	} {
		if errors.Is(err, c.err) {
			return c.status, c.code
		}
	}
	return http.StatusInternalServerError, api.CodeIndexFailed
}

// decode reads the JSON body of a request.
func decode(r *http.Request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, api.CodeUnsupportedType, "send the body as application/json")
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fmt.Errorf("the body is larger than %d bytes: %w", maxBody, err)
		}
		return refuse(http.StatusBadRequest, api.CodeBadRequest,
			"the body is not the JSON object that this path takes: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, api.CodeBadRequest, "the body has more than one JSON value")
	}
	return nil
}

// number reads an integer of the query string.
func number(r *http.Request, name string, otherwise, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, refuse(http.StatusBadRequest, api.CodeBadRequest, "%s must be a number from %d to %d", name, least,
			most)
	}
	return n, nil
}

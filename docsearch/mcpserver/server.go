// Package mcpserver offers the document daemon to agents as an MCP server: tools to
// search and to read, and resources for documents.
//
// It holds no state but the client of the daemon. A fault that the agent can act on, such as a
// wrong folder name or a daemon that cannot be brought back, is a tool error with text
// that says what to do; protocol errors are for broken requests.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// API is what the server needs of the daemon. [*client.Client] implements it.
type API interface {
	Info(ctx context.Context) (*api.ServerInfo, error)
	Folders(ctx context.Context) (*api.Folders, error)
	AddFolder(ctx context.Context, path string) (*api.Folder, error)
	Search(ctx context.Context, q api.SearchRequest) (*api.SearchResponse, error)
	SearchContent(ctx context.Context, q api.SearchContentRequest) (*api.SearchResponse, error)
	Document(ctx context.Context, id string, offset, limit int) (*api.Document, error)
}

const (
	indexWait = 30 * time.Second       // from the first search on, in which searches wait for the first index
	indexPoll = 100 * time.Millisecond // pause between looks at the index
	infoWait  = 3 * time.Second        // for what the descriptions of the searches say
)

// Options configure a Server. Client is required.
type Options struct {
	Client  API
	Version string
	// Folders are absolute paths of the folders that the agent may see. If there are none,
	// it sees all folders of the daemon.
	Folders []string
	// Model is that of the embeddings that the agent asks for. If the daemon has another, or
	// none, results warn of it.
	Model string
	// Logger logs failures. It must not write to stdout if that is the transport. Nil
	// discards the log.
	Logger *slog.Logger
}

// Server is an MCP server over a client of the daemon.
type Server struct {
	api     API
	log     *slog.Logger
	folders []string // that the agent may see; none: all
	model   string   // that the agent asks for
	mcp     *mcp.Server

	indexWait, indexPoll time.Duration
	waitEnds             func() time.Time // indexWait after its first call
}

const instructions = `Search and read the user's documents in the folders that list_folders names. get_server_info tells the formats, and whether searches are by words alone or by their meaning too.
Start with search_content: give the ideas you look for as semantic_concepts and names, numbers or identifiers as exact_terms. Use search for a query with operators.
Each result has a document ID and a location. Read more of a document with get_document_data. If nothing is found, use fewer or other words, a lower min_score, or another folder.
A warning says when a folder is not yet completely indexed; then search again later.`

// New returns a Server. It fails if there is no client.
func New(o Options) (*Server, error) {
	if o.Client == nil {
		return nil, errors.New("an MCP server needs a client of the daemon")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{api: o.Client, log: o.Logger, model: o.Model, indexWait: indexWait, indexPoll: indexPoll}
	s.waitEnds = sync.OnceValue(func() time.Time { return time.Now().Add(s.indexWait) })
	for _, path := range o.Folders {
		s.folders = append(s.folders, realPath(path))
	}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "docsearch", Title: "Document search", Version: o.Version},
		&mcp.ServerOptions{Instructions: instructions,
			// The lists always have the same entries.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{},
				Resources: &mcp.ResourceCapabilities{}},
			// The documents are private, and change.
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" }})
	s.mcp.AddReceivingMiddleware(s.recoverPanics, allowNull, s.describeSearches)
	if err := s.addTools(); err != nil {
		return nil, err
	}
	s.addResources()
	return s, nil
}

// Run serves one session, until its client leaves or ctx ends.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	err := s.mcp.Run(ctx, t)
	if err != nil && !left(err) {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// left reports whether err only says that the client is no longer there to be written to.
func left(err error) bool {
	return errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}

// recoverPanics has a request that panics fail alone.
func (s *Server) recoverPanics(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("request panicked", "method", method, "panic", fmt.Sprint(p), "stack",
					string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
					Message: "internal error; other requests still work"}
			}
		}()
		return next(ctx, method, req)
	}
}

// allowNull takes the arguments null for none. Go-sdk 1.8.0 panics when it sets the
// default of an argument in them.
func allowNull(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if params, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && params != nil &&
			string(params.Arguments) == "null" {
			params.Arguments = nil
		}
		return next(ctx, method, req)
	}
}

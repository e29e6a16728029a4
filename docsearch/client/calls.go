package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

const foldersPath = "/api/v1/folders"

// Health asks for the daemon's state.
func (c *Client) Health(ctx context.Context) (*api.Health, error) {
	return get[api.Health](ctx, c, "/health")
}

// Info describes the daemon.
func (c *Client) Info(ctx context.Context) (*api.ServerInfo, error) {
	return get[api.ServerInfo](ctx, c, "/api/v1/server/info")
}

// Folders lists the folders that the daemon indexes.
func (c *Client) Folders(ctx context.Context) (*api.Folders, error) {
	return get[api.Folders](ctx, c, foldersPath)
}

// AddFolder has the daemon index the folder at path, which is absolute.
func (c *Client) AddFolder(ctx context.Context, path string) (*api.Folder, error) {
	return call[api.Folder](ctx, c, request{method: http.MethodPost, path: foldersPath,
		body: api.AddFolder{Path: path}})
}

// RemoveFolder has the daemon forget the folder at path. The files stay.
func (c *Client) RemoveFolder(ctx context.Context, path string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: foldersPath + "/" + url.PathEscape(path)}, nil)
}

// Search searches.
func (c *Client) Search(ctx context.Context, q api.SearchRequest) (*api.SearchResponse, error) {
	return call[api.SearchResponse](ctx, c, request{method: http.MethodPost, path: "/api/v1/search", body: q})
}

// SearchContent searches for concepts and terms.
func (c *Client) SearchContent(ctx context.Context, q api.SearchContentRequest) (*api.SearchResponse, error) {
	return call[api.SearchResponse](ctx, c, request{method: http.MethodPost, path: "/api/v1/search_content", body: q})
}

// Document returns text of the document, from a byte offset. A limit of 0 leaves the
// number of bytes to the daemon.
func (c *Client) Document(ctx context.Context, id string, offset, limit int) (*api.Document, error) {
	path := fmt.Sprintf("/api/v1/documents/%s?offset=%d", url.PathEscape(id), offset)
	if limit != 0 {
		path += fmt.Sprintf("&limit=%d", limit)
	}
	return get[api.Document](ctx, c, path)
}

func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return call[T](ctx, c, request{method: http.MethodGet, path: path})
}

// call sends the request and returns the answer.
func call[T any](ctx context.Context, c *Client, r request) (*T, error) {
	var out T
	if err := c.do(ctx, r, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

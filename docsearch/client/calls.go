package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
)

const (
	foldersPath = "/api/v1/folders"
	// longPoll is how long the daemon waits for a change of the folders.
	longPoll = 30 * time.Second
)

// Health asks for the daemon's state.
func (c *Client) Health(ctx context.Context) (*api.Health, error) {
	return get[api.Health](ctx, c, "/health", nil)
}

// Info describes the daemon.
func (c *Client) Info(ctx context.Context) (*api.ServerInfo, error) {
	return get[api.ServerInfo](ctx, c, "/api/v1/server/info", nil)
}

// Folders lists the folders that the daemon indexes.
func (c *Client) Folders(ctx context.Context) (*api.Folders, error) {
	return get[api.Folders](ctx, c, foldersPath, nil)
}

// AddFolder has the daemon index the folder at path, which is absolute.
func (c *Client) AddFolder(ctx context.Context, path string) (*api.Folder, error) {
	var f api.Folder
	return &f, c.do(ctx, addFolder(path), &f)
}

func addFolder(path string) request {
	return request{method: http.MethodPost, path: foldersPath, body: api.AddFolder{Path: path}}
}

// RemoveFolder has the daemon forget the folder at path. The files stay.
func (c *Client) RemoveFolder(ctx context.Context, path string) error {
	if err := c.do(ctx, request{method: http.MethodDelete, path: folderPath(path)}, nil); err != nil {
		return err
	}
	c.dropFolder(path)
	return nil
}

// Search searches the folder at path, or all folders if path is empty.
func (c *Client) Search(ctx context.Context, path string, q api.SearchRequest) (*api.SearchResponse, error) {
	return c.search(ctx, path, "/search", q)
}

// SearchContent searches the folder at path, or all folders if path is empty.
func (c *Client) SearchContent(ctx context.Context, path string, q api.SearchContentRequest) (*api.SearchResponse, error) {
	return c.search(ctx, path, "/search_content", q)
}

func (c *Client) search(ctx context.Context, folder, action string, body any) (*api.SearchResponse, error) {
	base := "/api/v1"
	if folder != "" {
		base = folderPath(folder)
	}
	var found api.SearchResponse
	if err := c.do(ctx, request{method: http.MethodPost, path: base + action, body: body}, &found); err != nil {
		return nil, err
	}
	return &found, nil
}

// Documents lists documents of the folder at path, from the start or after a cursor. A
// limit of 0 leaves the number to the daemon.
func (c *Client) Documents(ctx context.Context, path, cursor string, limit int) (*api.Documents, error) {
	query := url.Values{}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	setNumber(query, "limit", limit)
	return get[api.Documents](ctx, c, folderPath(path)+"/documents", query)
}

// Document returns text of the document, from a byte offset. A limit of 0 leaves the
// number of bytes to the daemon.
func (c *Client) Document(ctx context.Context, id string, offset, limit int) (*api.Document, error) {
	query := url.Values{}
	setNumber(query, "offset", offset)
	setNumber(query, "limit", limit)
	return get[api.Document](ctx, c, "/api/v1/documents/"+url.PathEscape(id), query)
}

// WaitFolders returns the folders as soon as their revision is not after. Unlike other
// calls it starts no daemon: while none runs, it waits for one. It returns early only
// if ctx ends or the daemon says no.
func (c *Client) WaitFolders(ctx context.Context, after int64) (*api.Folders, error) {
	for {
		folders, err := c.pollFolders(ctx, after)
		if _, no := errors.AsType[*APIError](err); no {
			return nil, err
		}
		if err == nil && folders.Revision != after {
			return folders, nil
		}
		if err != nil && !pause.For(ctx, c.poll) || ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (c *Client) pollFolders(ctx context.Context, after int64) (*api.Folders, error) {
	record, ok := c.running()
	if !ok || record.APIVersion != api.Version {
		return nil, errors.New("no daemon runs")
	}
	query := url.Values{}
	query.Set("after", strconv.FormatInt(after, 10))
	query.Set("wait", strconv.Itoa(int(longPoll/time.Second)))
	var folders api.Folders
	r := request{method: http.MethodGet, path: foldersPath, query: query, limit: longPoll + c.opts.AnswerTimeout}
	return &folders, c.send(ctx, record, r, &folders)
}

func folderPath(path string) string { return foldersPath + "/" + url.PathEscape(path) }

func setNumber(query url.Values, name string, n int) {
	if n != 0 {
		query.Set(name, strconv.Itoa(n))
	}
}

func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	var out T
	if err := c.do(ctx, request{method: http.MethodGet, path: path, query: query}, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

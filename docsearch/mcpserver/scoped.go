package mcpserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
)

// scoped is an API that shows some folders of the daemon only. Other agents may have
// given it more, which are not for this one.
type scoped struct {
	API
	folders []string
}

func (s scoped) Folders(ctx context.Context) (*api.Folders, error) {
	return s.only(s.API.Folders(ctx))
}

func (s scoped) WaitFolders(ctx context.Context, after int64) (*api.Folders, error) {
	return s.only(s.API.WaitFolders(ctx, after))
}

// only removes the folders that are not in scope.
func (s scoped) only(all *api.Folders, err error) (*api.Folders, error) {
	if err != nil {
		return nil, err
	}
	return &api.Folders{Revision: all.Revision, Folders: slices.DeleteFunc(slices.Clone(all.Folders), func(f api.Folder) bool {
		return !slices.Contains(s.folders, f.Path)
	})}, nil
}

func (s scoped) Search(ctx context.Context, folder string, q api.SearchRequest) (*api.SearchResponse, error) {
	if err := s.check(folder); err != nil {
		return nil, err
	}
	if folder == "" {
		q.Folders = s.folders
	}
	return s.API.Search(ctx, folder, q)
}

func (s scoped) SearchContent(ctx context.Context, folder string, q api.SearchContentRequest) (*api.SearchResponse, error) {
	if err := s.check(folder); err != nil {
		return nil, err
	}
	if folder == "" {
		q.Folders = s.folders
	}
	return s.API.SearchContent(ctx, folder, q)
}

func (s scoped) Documents(ctx context.Context, folder, cursor string, limit int) (*api.Documents, error) {
	if err := s.check(folder); err != nil {
		return nil, err
	}
	return s.API.Documents(ctx, folder, cursor, limit)
}

func (s scoped) Document(ctx context.Context, id string, offset, limit int) (*api.Document, error) {
	d, err := s.API.Document(ctx, id, offset, limit)
	if err == nil && !slices.Contains(s.folders, d.Folder) {
		return nil, refused(api.CodeDocumentNotFound, "no such document: "+id)
	}
	return d, err
}

// check refuses a folder that is out of scope as if the daemon did not have it. ""
// means all folders in scope.
func (s scoped) check(folder string) error {
	if folder == "" || slices.Contains(s.folders, folder) {
		return nil
	}
	return refused(api.CodeFolderNotFound, fmt.Sprintf("no such folder: %s", folder))
}

func refused(code, message string) error {
	return &client.APIError{Status: http.StatusNotFound, Code: code, Message: message}
}

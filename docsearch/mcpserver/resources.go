package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
)

const (
	foldersURI     = "docs://folders"
	documentPrefix = "docs://documents/"
	listPage       = 100  // documents in one page of resources/list
	maxListed      = 1000 // documents in all pages
)

var documentID = regexp.MustCompile(documentIDs)

func (s *Server) addResources() {
	s.addFoldersResource()
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: documentPrefix + "{id}", Name: "document",
		Title: "Document", Description: "Text of a document, by the ID that a search returns.", MIMEType: "text/plain"}, s.readDocument)
}

func (s *Server) addFoldersResource() {
	s.mcp.AddResource(&mcp.Resource{URI: foldersURI, Name: "folders", Title: "Folders",
		Description: "Folders that can be searched, and how much of each is indexed.", MIMEType: "application/json"}, s.readFolders)
}

func (s *Server) readFolders(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	folders, _, err := s.visible(ctx)
	if err != nil {
		return nil, s.resourceError(foldersURI, err)
	}
	text, err := json.MarshalIndent(foldersOutput{Folders: folders}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode folders: %w", err)
	}
	return contents(foldersURI, "application/json", string(text)), nil
}

func (s *Server) readDocument(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	id := strings.TrimPrefix(uri, documentPrefix)
	if !documentID.MatchString(id) {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	doc, err := s.visibleDocument(ctx, id, 0, maxDocument)
	if err != nil {
		return nil, s.resourceError(uri, err)
	}
	text := doc.Text
	if doc.NextOffset > 0 {
		text += fmt.Sprintf("\n\n[The document goes on. Read the rest with get_document_data, from offset %d.]\n", doc.NextOffset)
	}
	return contents(uri, mimeType(doc.Type), text), nil
}

func contents(uri, mime, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

// mimeType is that of the text of a document, which all but Markdown is plain.
func mimeType(kind string) string {
	if kind == "markdown" {
		return "text/markdown"
	}
	return "text/plain"
}

// resourceError makes an error of the protocol that says what to do.
func (s *Server) resourceError(uri string, err error) error {
	if says, ok := errors.AsType[*client.APIError](err); ok && says.Code == api.CodeDocumentNotFound {
		return mcp.ResourceNotFoundError(uri)
	}
	s.log.Warn("resource not read", "uri", uri, "err", err)
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: explain(err).Error()}
}

// place is where a page of resources/list starts: in which folder, after which cursor
// of its documents, and how many were listed before.
type place struct {
	Folder string `json:"f"`
	Cursor string `json:"c,omitempty"`
	Listed int    `json:"n"`
}

func (p place) encode() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func parsePlace(cursor string) (place, error) {
	var p place
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil || p.Listed < 0 || p.Folder == "" {
		return place{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid cursor; list again from the start"}
	}
	return p, nil
}

// listDocuments adds documents to the answer to resources/list, in pages. A daemon that
// is down leaves the list short and does not fail it.
func (s *Server) listDocuments(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		params, ok := req.GetParams().(*mcp.ListResourcesParams)
		if !ok || method != "resources/list" {
			return next(ctx, method, req)
		}
		var from place
		if params != nil && params.Cursor != "" {
			var err error
			if from, err = parsePlace(params.Cursor); err != nil {
				return nil, err
			}
			params.Cursor = "" // the resources that this cursor is not of are a single page
		}
		result, err := next(ctx, method, req)
		list, ok := result.(*mcp.ListResourcesResult)
		if err != nil || !ok {
			return result, err
		}
		if from.Folder != "" {
			list.Resources = []*mcp.Resource{}
		}
		s.appendDocuments(ctx, list, from)
		return list, nil
	}
}

// appendDocuments appends a page of documents, and the cursor of the next page.
func (s *Server) appendDocuments(ctx context.Context, list *mcp.ListResourcesResult, from place) {
	page, next, err := s.documentsFrom(ctx, from)
	if err != nil {
		s.log.Warn("documents not listed", "err", err)
		return
	}
	for _, d := range page {
		list.Resources = append(list.Resources, &mcp.Resource{URI: documentPrefix + d.ID, Name: d.Name,
			Description: d.Path, MIMEType: mimeType(d.Type)})
	}
	if next.Folder != "" && next.Listed < maxListed {
		list.NextCursor = next.encode()
	}
}

// documentsFrom returns documents of one folder, and where the next ones start: later
// in this folder, or in the next one. The folder of that is empty at the end.
func (s *Server) documentsFrom(ctx context.Context, from place) ([]api.DocumentSummary, place, error) {
	folders, _, err := s.visible(ctx)
	if err != nil || len(folders) == 0 {
		return nil, place{}, err
	}
	all := paths(folders)
	if from.Folder == "" {
		from.Folder = all[0]
	}
	at := slices.Index(all, from.Folder)
	if at < 0 {
		return nil, place{}, nil // the folder was removed since the page before
	}
	page, err := s.api.Documents(ctx, from.Folder, from.Cursor, min(listPage, maxListed-from.Listed))
	if err != nil {
		return nil, place{}, err
	}
	next := place{Folder: from.Folder, Cursor: page.NextCursor, Listed: from.Listed + len(page.Documents)}
	if page.NextCursor == "" {
		next.Folder = ""
		if at+1 < len(all) {
			next.Folder = all[at+1]
		}
	}
	return page.Documents, next, nil
}

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
)

const (
	foldersURI     = "docs://folders"
	documentPrefix = "docs://documents/"
)

var documentID = regexp.MustCompile(documentIDs)

func (s *Server) addResources() {
	s.mcp.AddResource(&mcp.Resource{URI: foldersURI, Name: "folders", Title: "Folders",
		Description: "Folders that can be searched, and how much of each is indexed.", MIMEType: "application/json"},
		s.readFolders)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: documentPrefix + "{id}", Name: "document",
		Title: "Document", Description: "Text of a document, by the ID that a search returns.", MIMEType: "text/plain"},
		s.readDocument)
}

func (s *Server) readFolders(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	folders, missing, err := s.visible(ctx)
	if err != nil {
		return nil, s.resourceError(foldersURI, err)
	}
	text, err := json.MarshalIndent(foldersOutput{Folders: folders, Warnings: missing}, "", "  ")
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
		text += fmt.Sprintf("\n\n[The document goes on. Read the rest with get_document_data, from offset %d.]\n",
			doc.NextOffset)
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

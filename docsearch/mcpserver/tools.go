package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
)

// folderInput is the argument of both searches that takes the place of their folders.
type folderInput struct {
	Folder string `json:"folder,omitempty" jsonschema:"Folder to search: its absolute path, or the last part of it. All folders if omitted."`
}

type searchContentInput struct {
	folderInput
	api.SearchContentRequest
}

type searchInput struct {
	folderInput
	api.SearchRequest
}

type documentInput struct {
	DocumentID string `json:"document_id" jsonschema:"ID of the document, from the results of a search."`
	Offset     int    `json:"offset,omitempty" jsonschema:"Byte of the text to start at: 0, or the nextOffset of the part before."`
	Limit      int    `json:"limit,omitempty" jsonschema:"Largest number of bytes of text."`
}

type noInput struct{}

type foldersOutput struct {
	Folders  []api.Folder `json:"folders" jsonschema:"Folders that can be searched."`
	Warnings []string     `json:"warnings,omitempty" jsonschema:"Folders that cannot be searched, and why."`
}

type infoOutput struct {
	Searches string `json:"searches" jsonschema:"How searches rank now."`
	*api.ServerInfo
}

func (s *Server) addTools() error {
	return errors.Join(
		addTool(s, "search_content", "Search documents by content",
			"Find documents by what they are about and by exact terms. "+
				"Returns the best passages of each document with their relevance and location, and the document ID. "+
				"Use this first. Read more of a document with get_document_data.", s.searchContent),
		addTool(s, "search", "Search documents",
			`Find documents with a query of words, "quoted phrases" and operators. Returns the best passages of each document with their relevance and location, and the document ID.`, s.search),
		addTool(s, "list_folders", "List folders",
			"List the folders that can be searched, with their state, number of documents, "+
				"how much of each is indexed, and what is left out and why.", s.listFolders),
		addTool(s, "get_document_data", "Read a document",
			"Read the text of a document by its ID, in parts if it is long. "+
				"All formats come as plain text.", s.document),
		addTool(s, "get_server_info", "Describe the server",
			"Describe the document server: version, state, size of the index, whether searches are by words alone or "+
				"by meaning too and with which model, formats and limits.", s.info),
	)
}

// describeSearches adds to the descriptions of the searches what the daemon can do now.
func (s *Server) describeSearches(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		list, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}
		brief, cancel := context.WithTimeout(ctx, infoWait)
		defer cancel()
		_, _, err = s.visible(brief) // indexing begins before the first search
		info, wrong := s.api.Info(brief)
		err = cmp.Or(err, wrong)
		if err != nil {
			s.log.Info("searches described without the daemon", "err", err)
			return list, nil
		}
		for i, tool := range list.Tools {
			if strings.HasPrefix(tool.Name, "search") {
				described := *tool
				described.Description += " Searches are " + info.Ranking() + "."
				list.Tools[i] = &described
			}
		}
		return list, nil
	}
}

// addTool adds a read-only tool. Its text is its output as JSON if handle returns none.
func addTool[In, Out any](
	s *Server, name, title, description string,
	handle func(context.Context, *mcp.CallToolRequest, In) (string, *Out, error),
) error {
	in, err := schemaFor[In]()
	if err != nil {
		return fmt.Errorf("schema of the input of %s: %w", name, err)
	}
	out, err := schemaFor[Out]()
	if err != nil {
		return fmt.Errorf("schema of the output of %s: %w", name, err)
	}
	delete(in.Properties, "folders") // folderInput has one
	no := false
	tool := &mcp.Tool{Name: name, Title: title, Description: description, InputSchema: in, OutputSchema: out,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no,
			OpenWorldHint: &no}}
	mcp.AddTool(s.mcp, tool, func(ctx context.Context, req *mcp.CallToolRequest, input In) (*mcp.CallToolResult, *Out,
		error) {
		text, output, err := handle(ctx, req, input)
		if err != nil {
			s.log.Warn("tool failed", "tool", name, "err", err)
			return nil, nil, explain(err)
		}
		result := &mcp.CallToolResult{}
		if text != "" {
			result.Content = []mcp.Content{&mcp.TextContent{Text: text}}
		}
		return result, output, nil
	})
	return nil
}

func (s *Server) searchContent(
	ctx context.Context, req *mcp.CallToolRequest, in searchContentInput,
) (string, *api.SearchResponse, error) {
	if len(in.SemanticConcepts)+len(in.ExactTerms) == 0 {
		return "", nil, errors.New("give at least one of semantic_concepts and exact_terms")
	}
	return s.find(ctx, req, in.Folder, func(folders []string) (*api.SearchResponse, error) {
		in.Folders = folders
		return s.api.SearchContent(ctx, in.SearchContentRequest)
	})
}

func (s *Server) search(
	ctx context.Context, req *mcp.CallToolRequest, in searchInput,
) (string, *api.SearchResponse, error) {
	return s.find(ctx, req, in.Folder, func(folders []string) (*api.SearchResponse, error) {
		in.Folders = folders
		found, err := s.api.Search(ctx, in.SearchRequest)
		if err == nil {
			found.NextCursor = "" // this tool takes none
		}
		return found, err
	})
}

// find searches the folder of that name, or all that the agent may see.
func (s *Server) find(
	ctx context.Context, req *mcp.CallToolRequest, folder string,
	search func(folders []string) (*api.SearchResponse, error),
) (string, *api.SearchResponse, error) {
	scope, err := s.prepare(ctx, req, folder)
	if err != nil {
		return "", nil, err
	}
	found, err := search(scope.named)
	if err != nil {
		return "", nil, err
	}
	if found.Results == nil {
		found.Results = []api.Result{}
	}
	found.Warnings = slices.Concat(scope.warnings, found.Warnings)
	return formatResults(scope, found), found, nil
}

func (s *Server) listFolders(ctx context.Context, _ *mcp.CallToolRequest, _ noInput) (string, *foldersOutput, error) {
	folders, missing, err := s.visible(ctx)
	if err != nil {
		return "", nil, err
	}
	if len(folders) == 0 && len(missing) > 0 {
		return "", nil, noFolders(missing)
	}
	return "", &foldersOutput{folders, missing}, nil
}

func (s *Server) document(
	ctx context.Context, _ *mcp.CallToolRequest, in documentInput,
) (string, *api.Document, error) {
	doc, err := s.visibleDocument(ctx, in.DocumentID, in.Offset, in.Limit)
	if err != nil {
		return "", nil, err
	}
	return formatDocument(doc), doc, nil
}

// visibleDocument returns a document of a folder that the agent may see.
func (s *Server) visibleDocument(ctx context.Context, id string, offset, limit int) (*api.Document, error) {
	doc, err := s.api.Document(ctx, id, offset, limit)
	if err == nil && !s.sees(doc.Folder) {
		return nil, &client.APIError{Status: http.StatusNotFound, Code: api.CodeDocumentNotFound,
			Message: "no document " + id}
	}
	return doc, err
}

func (s *Server) info(ctx context.Context, _ *mcp.CallToolRequest, _ noInput) (string, *infoOutput, error) {
	info, err := s.api.Info(ctx)
	if err != nil {
		return "", nil, err
	}
	if len(s.folders) > 0 {
		folders, missing, err := s.visible(ctx)
		if err != nil {
			return "", nil, err
		}
		narrow(info, folders, missing)
	}
	if warning := info.ModelWarning(s.model); warning != "" {
		info.Warnings = append(info.Warnings, warning)
	}
	return "", &infoOutput{info.Ranking(), info}, nil
}

// narrow makes info tell of some folders alone: those of other agents are not for this
// one. The size of the index and the number of vectors are of all.
func narrow(info *api.ServerInfo, folders []api.Folder, missing []string) {
	info.Status, info.Percent, info.Warnings = api.StatusHealthy, 100, missing
	info.Folders, info.Documents, info.Chunks, info.TextBytes = len(folders), 0, 0, 0
	for _, f := range folders {
		info.Documents += f.Documents
		info.Chunks += f.Chunks
		info.TextBytes += f.TextBytes
		if f.Warning != "" {
			info.Warnings = append(info.Warnings, f.Path+": "+f.Warning)
		}
		if f.Status == api.StatusIndexing {
			info.Status, info.Percent = f.Status, min(info.Percent, f.Percent)
		}
	}
	if len(info.Warnings) > 0 && info.Status == api.StatusHealthy {
		info.Status = api.StatusDegraded
	}
}

// explain makes an error that tells an agent what to do.
func explain(err error) error {
	says, ok := errors.AsType[*client.APIError](err)
	if !ok {
		return err
	}
	advice, ok := map[string]string{
		api.CodeFolderNotFound:   "call list_folders for the folders that exist",
		api.CodeDocumentNotFound: "take document IDs from the results of a search; the document may have been deleted",
		api.CodeBadRequest:       "correct the arguments",
		api.CodeUnauthorized:     "the user must give this server the token of the daemon",
		api.CodeIndexFailed:      "try again; if it stays, the user must look into the daemon's log",
		api.CodeDiskFull:         "the user must free some disk space",
	}[says.Code]
	if !ok {
		return err
	}
	return fmt.Errorf("%s: %s", says.Message, advice)
}

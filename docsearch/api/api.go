// Package api is the contract between the document daemon and its clients: the paths,
// requests, responses and error codes of the REST API. openapi.yaml describes the same
// for programs in other languages.
//
// All requests and responses are JSON. Times are RFC 3339, sizes are bytes, and
// relevance is a number from 0 to 1.
package api

import (
	"fmt"
	"time"
)

// Version is the version of the API that this code speaks, the v1 of its paths.
const Version = 1

// Status is the state of a daemon or of one folder.
type Status string

const (
	// StatusHealthy: everything is indexed.
	StatusHealthy Status = "healthy"
	// StatusIndexing: searches are answered from what is indexed so far.
	StatusIndexing Status = "indexing"
	// StatusDegraded: searches are answered, and something does not work, which the
	// warnings name: a folder is gone, or the disk is full.
	StatusDegraded Status = "degraded"
	// StatusMissing: the folder is gone. What was indexed stays, and is found again
	// when the folder returns. Of folders only.
	StatusMissing Status = "missing"
)

// Health is the answer to GET /health.
type Health struct {
	Status     Status   `json:"status"`
	PID        int      `json:"pid"`
	APIVersion int      `json:"apiVersion"`
	Percent    int      `json:"percent"` // of the files of all folders, 100 when nothing is left to index
	Warnings   []string `json:"warnings,omitempty"`
}

// ServerInfo is the answer to GET /api/v1/server/info.
type ServerInfo struct {
	Name       string      `json:"name"`
	Version    string      `json:"version"`
	APIVersion int         `json:"apiVersion"`
	PID        int         `json:"pid"`
	StartedAt  time.Time   `json:"startedAt"`
	Status     Status      `json:"status"`
	Percent    int         `json:"percent"`
	Folders    int         `json:"folders"`
	Documents  int         `json:"documents"`
	Chunks     int         `json:"chunks"`
	TextBytes  int64       `json:"textBytes"`
	IndexBytes int64       `json:"indexBytes"`        // of its files
	Language   string      `json:"language"`          // whose endings of words searches ignore
	Formats    []string    `json:"formats,omitempty"` // types of documents
	MaxFile    int64       `json:"maxFileBytes"`
	Embeddings *Embeddings `json:"embeddings,omitempty"` // absent: searches are by words alone
	Warnings   []string    `json:"warnings,omitempty"`
}

// ModelWarning says that searches do not use the model that a client asks for, or "".
func (i *ServerInfo) ModelWarning(model string) string {
	switch {
	case model == "" || i.Embeddings != nil && i.Embeddings.Model == model:
		return ""
	case i.Embeddings == nil:
		return fmt.Sprintf("the daemon was started without embeddings and searches by words alone, not with %q; docsearch stop ends it", model)
	}
	return fmt.Sprintf("the daemon uses the model %q, not %q; docsearch stop ends it", i.Embeddings.Model, model)
}

// Embeddings describes the configured source of embeddings.
type Embeddings struct {
	Model      string `json:"model"`
	Chunks     int    `json:"chunks"`               // that have a vector
	LastFailed string `json:"lastFailed,omitempty"` // why the endpoint fails now
}

// Folder is one folder that the daemon indexes.
type Folder struct {
	Path      string         `json:"path"` // absolute, without symbolic links
	Status    Status         `json:"status"`
	Percent   int            `json:"percent"`
	Documents int            `json:"documents"`
	Chunks    int            `json:"chunks"`
	TextBytes int64          `json:"textBytes"`
	IndexedAt time.Time      `json:"indexedAt,omitzero"` // when it was last complete
	Skipped   map[string]int `json:"skipped,omitempty"`  // number of files not indexed, by reason
	Warning   string         `json:"warning,omitempty"`
}

// IsNew reports whether the folder is being indexed for the first time.
func (f Folder) IsNew() bool { return f.Status == StatusIndexing && f.IndexedAt.IsZero() }

// Folders is the answer to GET /api/v1/folders. Revision changes whenever a folder is
// added or removed or changes its status. GET /api/v1/folders?after=REVISION&wait=30
// answers when the revision is another, or after that many seconds, at most 60.
type Folders struct {
	Folders  []Folder `json:"folders"`
	Revision int64    `json:"revision"`
}

// AddFolder is the body of POST /api/v1/folders. Adding a folder again changes nothing.
// The answer is the Folder.
type AddFolder struct {
	Path string `json:"path"`
}

// SearchRequest is the body of POST /api/v1/folders/{path}/search, and of
// POST /api/v1/search, which searches several folders.
type SearchRequest struct {
	Folders        []string `json:"folders,omitempty"`               // of /api/v1/search: where to search, all folders if omitted
	Query          string   `json:"query"`                           // words, "phrases", OR, -word, word*, title:word, path:word
	Limit          int      `json:"limit,omitempty"`                 // 1-100, 10 if omitted
	Threshold      float64  `json:"threshold,omitempty"`             // least relevance of a result
	IncludeContent bool     `json:"includeContent,omitempty"`        // with the whole text of the passages
	Passages       int      `json:"passages_per_document,omitempty"` // 1-20, 3 if omitted
}

// SearchContentRequest is the body of POST /api/v1/folders/{path}/search_content, and
// of POST /api/v1/search_content, which searches several folders. A result matches at
// least one concept or term; each exact term that it contains raises its relevance.
type SearchContentRequest struct {
	Folders          []string `json:"folders,omitempty"` // as in SearchRequest
	SemanticConcepts []string `json:"semantic_concepts,omitempty"`
	ExactTerms       []string `json:"exact_terms,omitempty"` // words, and words that stand side by side
	MinScore         float64  `json:"min_score,omitempty"`
	Limit            int      `json:"limit,omitempty"`                 // 1-100, 10 if omitted
	IncludeContent   bool     `json:"includeContent,omitempty"`        // as in SearchRequest
	Passages         int      `json:"passages_per_document,omitempty"` // as in SearchRequest
	Cursor           string   `json:"cursor,omitempty"`                // the nextCursor of the results before
}

// SearchResponse is the answer to all searches, best result first. Each document comes
// once, with its best passages.
type SearchResponse struct {
	Results     []Result    `json:"results"`
	Performance Performance `json:"performance"`
	NextCursor  string      `json:"nextCursor,omitempty"` // absent at the end
	Warnings    []string    `json:"warnings,omitempty"`
}

// Result is one document that a search found, with its best passages.
type Result struct {
	DocumentName string `json:"documentName"` // the title, or the file's name
	DocumentID   string `json:"documentId"`
	Folder       string `json:"folder"`
	Path         string `json:"path"` // absolute
	Passage
	MorePassages []Passage `json:"morePassages,omitempty"` // after the best one
}

// Passage is a part of a document.
type Passage struct {
	Relevance float64  `json:"relevance"`
	Snippet   string   `json:"snippet"` // plain text; matched words stand between U+E000 and U+E001
	Location  Location `json:"location"`
	Content   string   `json:"content,omitempty"`
}

// Snippets enclose each matched word in these private-use characters, which no
// document's text contains: the index removes them. Clients turn them into what they
// show, or remove them.
const (
	HighlightStart = "\ue000"
	HighlightEnd   = "\ue001"
)

// Location is where in its document a passage stands.
type Location struct {
	Line    int    `json:"line"`           // the first, from 1
	EndLine int    `json:"endLine"`        // the last
	Page    int    `json:"page,omitempty"` // from 1, of formats with pages
	Heading string `json:"heading,omitempty"`
}

// Performance tells how a search was made.
type Performance struct {
	SearchTime float64 `json:"searchTime"` // milliseconds in the daemon
	ModelUsed  string  `json:"modelUsed"`  // "bm25", or "hybrid:" and the model of the embeddings
}

// ModelLexical is the ModelUsed of a search without embeddings.
const ModelLexical = "bm25"

// DocumentSummary is a document in a list.
type DocumentSummary struct {
	ID       string    `json:"id"` // the same for the same path, whatever its content
	Name     string    `json:"name"`
	Folder   string    `json:"folder"`
	Path     string    `json:"path"` // absolute
	Type     string    `json:"type"` // text, markdown, html, code, pdf, docx
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	Chunks   int       `json:"chunks"`
}

// Documents is the answer to GET /api/v1/folders/{path}/documents?cursor=&limit=, in
// the order of the paths. Limit is 1-1000, 100 if omitted.
type Documents struct {
	Documents  []DocumentSummary `json:"documents"`
	NextCursor string            `json:"nextCursor,omitempty"`
}

// Document is the answer to GET /api/v1/folders/{path}/documents/{id}?offset=&limit=,
// and of GET /api/v1/documents/{id}. It has the text that was extracted from the file
// when it was indexed, from offset, at most limit bytes (65,536 if omitted, at most
// 1 MiB), cut between characters.
type Document struct {
	DocumentSummary
	Title      string `json:"title,omitempty"`
	Text       string `json:"text"`
	Offset     int    `json:"offset"`
	TextBytes  int    `json:"textBytes"`            // of the whole text
	NextOffset int    `json:"nextOffset,omitempty"` // absent at the end
}

// Error is the body of every response with a status of 400 or more, in an ErrorBody.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ErrorBody wraps an Error in a response: {"error":{"code":…,"message":…}}.
type ErrorBody struct {
	Error Error `json:"error"`
}

// Codes of errors.
const (
	CodeBadRequest       = "bad_request"        // 400
	CodeUnauthorized     = "unauthorized"       // 401
	CodeForbidden        = "forbidden"          // 403: Host or Origin is not local
	CodeNotFound         = "not_found"          // 404: no such path of the API
	CodeFolderNotFound   = "folder_not_found"   // 404
	CodeDocumentNotFound = "document_not_found" // 404
	CodeMethodNotAllowed = "method_not_allowed" // 405
	CodeTooLarge         = "too_large"          // 413
	CodeUnsupportedType  = "unsupported_media_type"
	CodeIndexFailed      = "index_failed" // 500: the index cannot be read or written
	CodeDiskFull         = "disk_full"    // 507
	CodeBusy             = "busy"         // 429: too many searches at once
	CodeStopping         = "stopping"     // 503
)

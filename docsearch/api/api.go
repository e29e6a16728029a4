// Package api is the contract between the document daemon and its clients: the paths,
// requests, responses and error codes of the REST API. openapi.yaml describes the same
// for programs in other languages.
//
// All requests and responses are JSON. Times are RFC 3339, sizes are bytes, and
// relevance is a number from 0 to 1. The jsonschema tags say what a field means, to agents
// too.
package api

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// OpenAPI is the OpenAPI 3.0 document of the API, in YAML. The daemon serves it at
// GET /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

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
	// StatusMissing: the folder is gone. Its index stays, and is found again
	// when the folder returns. Of folders only.
	StatusMissing Status = "missing"
)

// Health is the answer to GET /health.
type Health struct {
	Status     Status   `json:"status"`
	PID        int      `json:"pid"`
	APIVersion int      `json:"apiVersion"`
	Percent    int      `json:"percent"` // of the files of the folder that is least complete, 100 when nothing is left to index
	Warnings   []string `json:"warnings,omitempty"`
}

// ServerInfo is the answer to GET /api/v1/server/info.
type ServerInfo struct {
	Name       string      `json:"name" jsonschema:"Name of the program."`
	Version    string      `json:"version" jsonschema:"Version of the program."`
	APIVersion int         `json:"apiVersion" jsonschema:"Version of the daemon's API."`
	PID        int         `json:"pid" jsonschema:"Process of the daemon."`
	StartedAt  time.Time   `json:"startedAt" jsonschema:"When the daemon started."`
	Status     Status      `json:"status" jsonschema:"healthy: completely indexed. indexing: incomplete. degraded: see the warnings."`
	Percent    int         `json:"percent" jsonschema:"How much is indexed."`
	Folders    int         `json:"folders" jsonschema:"Number of folders."`
	Documents  int         `json:"documents" jsonschema:"Number of documents."`
	Chunks     int         `json:"chunks" jsonschema:"Number of passages."`
	TextBytes  int64       `json:"textBytes" jsonschema:"Bytes of text."`
	IndexBytes int64       `json:"indexBytes" jsonschema:"Bytes of the index on disk."`
	Language   string      `json:"language" jsonschema:"Language whose endings of words searches ignore."`
	Formats    []string    `json:"formats,omitempty" jsonschema:"Formats that are indexed."`
	MaxFile    int64       `json:"maxFileBytes" jsonschema:"Size of the largest file that is indexed."`
	Embeddings *Embeddings `json:"embeddings,omitempty" jsonschema:"Source of semantic vectors; absent if searches are by words alone."`
	Warnings   []string    `json:"warnings,omitempty" jsonschema:"What does not work, in words."`
}

// checksum ends the names of models on this machine.
var checksum = regexp.MustCompile(`-[0-9a-f]{8}$`)

// ModelWarning returns a warning if searches do not use the model that a client asks for, else "".
// The daemon's name of a model may end with a hyphen and a checksum, which clients do not know.
func (i *ServerInfo) ModelWarning(model string) string {
	switch {
	case model == "", i.Embeddings != nil &&
		(i.Embeddings.Model == model || checksum.ReplaceAllString(i.Embeddings.Model, "") == model):
		return ""
	case i.Embeddings == nil:
		return fmt.Sprintf("the daemon was started without embeddings and searches by words alone, not with %q; "+
			"docsearch stop ends it", model)
	}
	return fmt.Sprintf("the daemon uses the model %q, not %q; docsearch stop ends it", i.Embeddings.Model, model)
}

// Ranking says how searches rank now.
func (i *ServerInfo) Ranking() string {
	switch e := i.Embeddings; {
	case e == nil:
		return "by words alone now, not by meaning: give synonyms"
	case e.LastFailed != "":
		return fmt.Sprintf("by words alone now, because %s fails: %s", e.Model, e.LastFailed)
	case e.Former != "":
		return fmt.Sprintf("by words and by meaning now (%s, until %s has made all vectors)", e.Former, e.Model)
	default:
		return fmt.Sprintf("by words and by meaning now (%s)", e.Model)
	}
}

// Embeddings describes the configured source of embeddings.
type Embeddings struct {
	Model      string `json:"model" jsonschema:"Name of the model."`
	Chunks     int    `json:"chunks" jsonschema:"Number of passages that have a vector."`
	Former     string `json:"former,omitempty" jsonschema:"Name of the model before, which answers until the model has made all vectors; absent then."`
	LastFailed string `json:"lastFailed,omitempty" jsonschema:"Why the model or its endpoint fails, so that searches are by words alone; absent if it works."`
}

// Folder is one folder that the daemon indexes.
type Folder struct {
	Path      string         `json:"path" jsonschema:"Absolute path, without symbolic links."`
	Status    Status         `json:"status" jsonschema:"healthy: completely indexed. indexing: incomplete. degraded: see the warning. missing: the folder is gone, and what was indexed is still found."`
	Percent   int            `json:"percent" jsonschema:"How much is indexed."`
	Documents int            `json:"documents" jsonschema:"Number of documents."`
	Chunks    int            `json:"chunks" jsonschema:"Number of passages."`
	TextBytes int64          `json:"textBytes" jsonschema:"Bytes of text."`
	IndexedAt time.Time      `json:"indexedAt,omitzero" jsonschema:"When the folder was last completely indexed."`
	Skipped   map[string]int `json:"skipped,omitempty" jsonschema:"Number of files that are not indexed, by reason."`
	Warning   string         `json:"warning,omitempty" jsonschema:"What is wrong with the folder, in words."`
}

// Folders is the answer to GET /api/v1/folders.
type Folders struct {
	Folders []Folder `json:"folders"`
}

// Percent tells how much is indexed of the folders at some paths that are being indexed
// for the first time, 100 if none is.
func (l Folders) Percent(paths []string) int {
	percent := 100
	for _, f := range l.Folders {
		if f.Status == StatusIndexing && f.IndexedAt.IsZero() && slices.Contains(paths, f.Path) {
			percent = min(percent, f.Percent)
		}
	}
	return percent
}

// AddFolder is the body of POST /api/v1/folders. Adding a folder again changes nothing.
// The answer is the Folder.
type AddFolder struct {
	Path string `json:"path"`
}

// SearchRequest is the body of POST /api/v1/search, and, without Folders, of
// POST /api/v1/folders/{path}/search.
type SearchRequest struct {
	Folders        []string `json:"folders,omitempty" jsonschema:"Where to search; all folders if omitted."`
	Query          string   `json:"query" jsonschema:"What to look for: words in any form, and, with a model, their meaning. A document that has more of them is more relevant. Quoted phrases, +word, title:word and path:word must match; -word must not; word* stands for all words that begin so. With OR, one of all is enough."`
	Limit          int      `json:"limit,omitempty" jsonschema:"Largest number of documents."`
	Threshold      float64  `json:"threshold,omitempty" jsonschema:"Leave out results below this relevance: 0.3 leaves out what matches by chance."`
	IncludeContent bool     `json:"includeContent,omitempty" jsonschema:"Return the whole text of the passages, beside their snippets."`
	Passages       int      `json:"passages_per_document,omitempty" jsonschema:"Largest number of passages of one document, best first. They do not count towards limit."`
}

// SearchContentRequest is the body of POST /api/v1/search_content, and, without Folders,
// of POST /api/v1/folders/{path}/search_content. A result matches at least one concept or
// term.
type SearchContentRequest struct {
	Folders          []string `json:"folders,omitempty" jsonschema:"Where to search; all folders if omitted."`
	SemanticConcepts []string `json:"semantic_concepts,omitempty" jsonschema:"Ideas or topics to look for, each a few words. A result has at least one of their words, or means the same if there is a model."`
	ExactTerms       []string `json:"exact_terms,omitempty" jsonschema:"Names, numbers, identifiers and phrases, whose words stand side by side. Results that contain one come first; they are searched by words alone. Case, accents and endings of words make no difference."`
	MinScore         float64  `json:"min_score,omitempty" jsonschema:"Leave out results below this relevance: 0.3 leaves out what matches by chance."`
	Limit            int      `json:"limit,omitempty" jsonschema:"Largest number of documents."`
	IncludeContent   bool     `json:"includeContent,omitempty" jsonschema:"Return the whole text of the passages, beside their snippets."`
	Passages         int      `json:"passages_per_document,omitempty" jsonschema:"Largest number of passages of one document, best first. They do not count towards limit."`
	Cursor           string   `json:"cursor,omitempty" jsonschema:"The nextCursor of the results before, to get the next ones. Leave the other arguments as they were."`
}

// SearchResponse is the answer to all searches.
type SearchResponse struct {
	Results     []Result    `json:"results" jsonschema:"Documents found, best first, each once."`
	Performance Performance `json:"performance" jsonschema:"How the search was made."`
	NextCursor  string      `json:"nextCursor,omitempty" jsonschema:"Argument cursor for the next results; absent at the end."`
	Warnings    []string    `json:"warnings,omitempty" jsonschema:"What limits the results, in words."`
}

// Result is one document that a search found, with its best passages.
type Result struct {
	DocumentName string `json:"documentName" jsonschema:"Title of the document, or the name of its file."`
	DocumentID   string `json:"documentId" jsonschema:"ID to read the document by."`
	Folder       string `json:"folder" jsonschema:"Path of the folder that it is in."`
	Path         string `json:"path" jsonschema:"Absolute path."`
	Passage
	MorePassages []Passage `json:"morePassages,omitempty" jsonschema:"Next best passages of the document."`
}

// Passage is a part of a document.
type Passage struct {
	Relevance float64 `json:"relevance" jsonschema:"How well it matches, from 0 to 1. A passage that has each word once has about 0.45."`
	FoundBy   FoundBy `json:"foundBy,omitempty" jsonschema:"Why it was found: by its words, by its meaning, or by both."`
	// Relevance is 1-(1-WordScore)(1-MeaningScore).
	WordScore    float64 `json:"wordScore,omitempty" jsonschema:"Relevance by words alone; absent if none matches."`
	MeaningScore float64 `json:"meaningScore,omitempty" jsonschema:"Relevance by meaning alone; absent without a vector, or if the meaning is another. performance.modelUsed names the model."`
	Snippet      string  `json:"snippet" jsonschema:"Best part of the passage, as plain text."`
	// Highlights are in ascending order and do not overlap.
	Highlights []Highlight `json:"highlights,omitempty" jsonschema:"Words of the snippet that match."`
	Location   Location    `json:"location" jsonschema:"Where the passage stands in the document."`
	Content    string      `json:"content,omitempty" jsonschema:"Whole passage."`
}

// FoundBy says why a passage was found.
type FoundBy string

// A passage is found by words of the query, by its meaning, which a model compares with that
// of the query, or by both.
const (
	ByWords   FoundBy = "words"
	ByMeaning FoundBy = "meaning"
	ByBoth    FoundBy = "both"
)

// Reason says for people, after a relevance, why a passage was found, with both scores if both
// count: ", by meaning". It is empty if the daemon does not say it.
func (p *Passage) Reason() string {
	percent := func(score float64) string { return fmt.Sprintf("%.0f %%", 100*score) }
	switch p.FoundBy {
	case ByWords:
		return ", by words"
	case ByMeaning:
		return ", by meaning"
	case ByBoth:
		return ", by words (" + percent(p.WordScore) + ") and meaning (" + percent(p.MeaningScore) + ")"
	}
	return ""
}

// Highlight is a matched word in a snippet, from Start up to and without End. Both count
// characters (Unicode code points), from 0.
type Highlight struct {
	Start int `json:"start" jsonschema:"First character, from 0."`
	End   int `json:"end" jsonschema:"Character after the last one."`
}

// Marked returns the snippet with each matched word replaced by what mark makes of it, and
// the text between them by what plain makes of it.
func (p *Passage) Marked(plain, mark func(string) string) string {
	var b strings.Builder
	text, at := []rune(p.Snippet), 0
	for _, h := range p.Highlights {
		if h.Start < at || h.End < h.Start || h.End > len(text) {
			continue // another program made them
		}
		b.WriteString(plain(string(text[at:h.Start])))
		b.WriteString(mark(string(text[h.Start:h.End])))
		at = h.End
	}
	b.WriteString(plain(string(text[at:])))
	return b.String()
}

// Location is where in its document a passage stands.
type Location struct {
	Line    int    `json:"line" jsonschema:"First line, from 1."`
	EndLine int    `json:"endLine" jsonschema:"Last line."`
	Page    int    `json:"page,omitempty" jsonschema:"Page, from 1, of documents with pages."`
	Heading string `json:"heading,omitempty" jsonschema:"Heading above the passage."`
}

// Performance tells how a search was made.
type Performance struct {
	SearchTime float64 `json:"searchTime" jsonschema:"Milliseconds that the search took."`
	ModelUsed  string  `json:"modelUsed" jsonschema:"bm25 for a search by words, or hybrid: and the model of the embeddings; several, with commas, if folders have others."`
}

// ModelLexical is the ModelUsed of a search without embeddings.
const ModelLexical = "bm25"

// DocumentSummary is a document in a list.
type DocumentSummary struct {
	ID       string    `json:"id" jsonschema:"ID of the document, the same for the same path whatever its content."`
	Name     string    `json:"name" jsonschema:"Title of the document, or the name of its file."`
	Folder   string    `json:"folder" jsonschema:"Path of the folder that it is in."`
	Path     string    `json:"path" jsonschema:"Absolute path."`
	Type     string    `json:"type" jsonschema:"Format of the file, such as markdown or pdf."`
	Bytes    int64     `json:"bytes" jsonschema:"Size of the file."`
	Modified time.Time `json:"modified" jsonschema:"When the file was changed."`
	Chunks   int       `json:"chunks" jsonschema:"Number of passages."`
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
	Title      string `json:"title,omitempty" jsonschema:"Title that the document gives itself."`
	Text       string `json:"text" jsonschema:"Text from offset on."`
	Offset     int    `json:"offset" jsonschema:"Byte of the text at which this part starts."`
	TextBytes  int    `json:"textBytes" jsonschema:"Bytes of the whole text."`
	NextOffset int    `json:"nextOffset,omitempty" jsonschema:"Argument offset for the next part; absent at the end."`
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
	CodeMethod           = "method_not_allowed" // 405
	CodeTooLarge         = "too_large"          // 413
	CodeUnsupportedType  = "unsupported_media_type"
	CodeIndexFailed      = "index_failed" // 500: the index cannot be read or written
	CodeDiskFull         = "disk_full"    // 507
	CodeBusy             = "busy"         // 429: too many searches at once
	CodeStopping         = "stopping"     // 503
)

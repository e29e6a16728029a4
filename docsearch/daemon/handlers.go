package daemon

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
)

// getHealth leaves out the warnings, which name folders, if the daemon has a token:
// this path needs none.
func (s *service) getHealth(*http.Request) (any, error) {
	status, percent, warnings := s.status()
	if s.daemon.opts.Token != "" {
		warnings = nil
	}
	return api.Health{Status: status, PID: os.Getpid(), APIVersion: api.Version, Percent: percent,
		Warnings: warnings}, nil
}

// status sums up the folders and the index.
func (s *service) status() (api.Status, int, []string) {
	status, percent, warnings := s.folders.Status()
	if why := s.index.Rebuilt(); why != "" {
		warnings = append(warnings, "the index was made anew when the daemon opened it: "+why)
	}
	if warning, now := s.daemon.searches.warning(); warning != "" {
		warnings = append(warnings, warning)
		if now && status == api.StatusHealthy {
			status = api.StatusDegraded
		}
	}
	return status, percent, warnings
}

func (s *service) getInfo(r *http.Request) (any, error) {
	bytes, vectors, err := s.index.Size()
	if err != nil {
		return nil, err
	}
	d := s.daemon
	info := api.ServerInfo{
		Name: "docsearch", Version: d.opts.Version, APIVersion: api.Version,
		PID: os.Getpid(), StartedAt: d.started, IndexBytes: bytes,
		Language: cmp.Or(d.opts.Language, index.Languages[0]), Formats: formats,
		MaxFile: cmp.Or(d.opts.Crawl.MaxFileBytes, 16<<20),
	}
	for _, f := range s.folders.List().Folders {
		info.Folders++
		info.Documents += f.Documents
		info.Chunks += f.Chunks
		info.TextBytes += f.TextBytes
	}
	info.Status, info.Percent, info.Warnings = s.status()
	if why := d.opts.ModelFault; why != "" {
		info.Warnings = append(info.Warnings, "searches are by words alone: "+why)
	}
	if e := d.opts.Embedder; e != nil {
		info.Embeddings = &api.Embeddings{Model: e.Model(), Chunks: vectors, Former: s.index.FormerModel(),
			LastFailed: s.index.EmbedderFailure(r.Context())}
		if why := info.Embeddings.LastFailed; why != "" {
			info.Warnings = append(info.Warnings, e.Model()+" fails, searches are by words alone: "+why)
		} else if why := s.folders.NoVectors(); why != "" {
			info.Warnings = append(info.Warnings, "what is new is found by words alone: "+why)
		}
	}
	if len(info.Warnings) > 0 && info.Status == api.StatusHealthy &&
		(d.opts.Embedder != nil || d.opts.ModelFault != "") {
		info.Status = api.StatusDegraded
	}
	return info, nil
}

// formats are the formats of documents, for people.
var formats = []string{"plain text", "Markdown", "HTML", "source code", "PDF", "DOCX", "PPTX", "XLSX", "OpenDocument",
	"EPUB", "RTF", "notebooks"}

func (s *service) getFolders(*http.Request) (any, error) { return s.folders.List(), nil }

func (s *service) postFolder(r *http.Request) (any, error) {
	var add api.AddFolder
	if err := decode(r, &add); err != nil {
		return nil, err
	}
	return s.folders.Add(add.Path)
}

func (s *service) deleteFolder(r *http.Request) (any, error) {
	return struct{}{}, s.folders.Remove(r.PathValue("path"))
}

// scope returns the folders to search: the one of the path, else those of the body.
func (s *service) scope(r *http.Request, named []string) ([]string, error) {
	if path := r.PathValue("path"); path != "" {
		if len(named) > 0 {
			return nil, refuse(http.StatusBadRequest, api.CodeBadRequest,
				"the path names the folder; leave folders out, or use /api/v1/search")
		}
		named = []string{path}
	}
	if len(named) > maxNames {
		return nil, refuse(http.StatusBadRequest, api.CodeBadRequest, "name at most %d folders", maxNames)
	}
	var found []string
	for _, path := range named {
		folder, err := s.folders.Find(path)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, folder) {
			found = append(found, folder)
		}
	}
	return found, nil
}

func (s *service) search(r *http.Request) (any, error) {
	var q api.SearchRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	return s.find(r, q.Folders, index.Query{Text: q.Query, Limit: q.Limit, Passages: q.Passages, Threshold: q.Threshold,
		Content: q.IncludeContent})
}

func (s *service) searchContent(r *http.Request) (any, error) {
	var q api.SearchContentRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if len(q.SemanticConcepts)+len(q.ExactTerms) > maxNames {
		return nil, refuse(http.StatusBadRequest, api.CodeBadRequest, "give at most %d concepts and terms", maxNames)
	}
	return s.find(r, q.Folders, index.Query{Concepts: q.SemanticConcepts, Terms: q.ExactTerms, Limit: q.Limit,
		Passages: q.Passages, Threshold: q.MinScore, Content: q.IncludeContent, Cursor: q.Cursor})
}

// find searches the named folders, and says so when the index is not complete.
func (s *service) find(r *http.Request, named []string, q index.Query) (_ any, err error) {
	q.Folders, err = s.scope(r, named)
	if err != nil {
		return nil, err
	}
	if q.Limit < 0 || q.Limit > 100 {
		return nil, refuse(http.StatusBadRequest, api.CodeBadRequest, "limit must be from 1 to 100")
	}
	if q.Passages < 0 || q.Passages > 20 {
		return nil, refuse(http.StatusBadRequest, api.CodeBadRequest, "passages_per_document must be from 1 to 20")
	}
	if q.Threshold < 0 || q.Threshold > 1 {
		return nil, refuse(http.StatusBadRequest, api.CodeBadRequest, "threshold and min_score must be from 0 to 1")
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return nil, refuse(http.StatusTooManyRequests, api.CodeBusy,
			"%d searches run already; search again in a moment", maxSearches)
	}
	found, err := s.index.Search(r.Context(), q)
	if r.Context().Err() == nil {
		s.daemon.searches.note(err)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range s.folders.List().Folders {
		if len(q.Folders) > 0 && !slices.Contains(q.Folders, f.Path) {
			continue
		}
		if f.Status == api.StatusIndexing {
			found.Warnings = append(found.Warnings, fmt.Sprintf("%s is being indexed, %d %% done", f.Path, f.Percent))
		} else if f.Warning != "" {
			found.Warnings = append(found.Warnings, f.Path+": "+f.Warning)
		}
	}
	return found, nil
}

func (s *service) getDocuments(r *http.Request) (any, error) {
	folder, err := s.folders.Find(r.PathValue("path"))
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", 100, 1, 1000)
	if err != nil {
		return nil, err
	}
	return s.index.Documents(r.Context(), folder, r.URL.Query().Get("cursor"), limit)
}

func (s *service) getDocument(r *http.Request) (any, error) {
	offset, err := number(r, "offset", 0, 0, 1<<31-1)
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", 64<<10, 1, 1<<20)
	if err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	document, err := s.index.Document(id, offset, limit)
	if err != nil {
		return nil, err
	}
	if path := r.PathValue("path"); path != "" {
		if folder, err := s.folders.Find(path); err != nil {
			return nil, err
		} else if folder != document.Folder {
			return nil, fmt.Errorf("%w in this folder: %s", index.ErrNoDocument, id)
		}
	}
	return document, nil
}

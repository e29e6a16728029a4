package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
)

// scope is what a search looks at.
type scope struct {
	folders  []string // that are searched
	named    []string // in the request to the daemon; none: all of its folders
	warnings []string
	indexing bool // one of them is not complete
}

// prepare finds the folders to search: the one that the agent names, or all. If one is
// being indexed for the first time, it may wait for that.
func (s *Server) prepare(ctx context.Context, req *mcp.CallToolRequest, name string) (scope, error) {
	all, missing, err := s.visible(ctx)
	if err != nil {
		return scope{}, err
	}
	if len(all) == 0 {
		return scope{}, noFolders(missing)
	}
	sc := scope{folders: paths(all), warnings: missing}
	if name != "" {
		path, err := resolve(sc.folders, name)
		if err != nil {
			return scope{}, err
		}
		sc.folders, sc.warnings = []string{path}, nil
	}
	if name != "" || len(s.folders) > 0 {
		sc.named = sc.folders
	}
	if s.model != "" {
		info, err := s.api.Info(ctx)
		if err != nil {
			return scope{}, err
		}
		if warning := info.ModelWarning(s.model); warning != "" {
			sc.warnings = append(sc.warnings, warning)
		}
	}
	sc.indexing, err = s.waitIndexed(ctx, req, sc.folders)
	return sc, err
}

// visible returns the folders that the agent may see: the configured ones, or all of
// the daemon if none is configured. It has the daemon add those that it lacks: others
// may have removed one, or it was not there before. missing says which cannot be added.
func (s *Server) visible(ctx context.Context) (seen []api.Folder, missing []string, err error) {
	answer, err := s.api.Folders(ctx)
	if err != nil {
		return nil, nil, err
	}
	seen = []api.Folder{}
	for _, f := range answer.Folders {
		if s.sees(f.Path) {
			seen = append(seen, f)
		}
	}
	for _, path := range s.folders {
		if slices.Contains(paths(seen), path) {
			continue
		}
		added, err := s.api.AddFolder(ctx, path)
		if says, ok := errors.AsType[*client.APIError](err); ok {
			missing = append(missing, fmt.Sprintf("%s is not indexed: %s", path, says.Message))
		} else if err != nil {
			return nil, nil, err
		} else {
			seen = append(seen, *added)
		}
	}
	return seen, missing, nil
}

func (s *Server) sees(path string) bool {
	return len(s.folders) == 0 || slices.Contains(s.folders, path)
}

// resolve returns the path of the folder that name means: the one with this path, or
// the only one whose path ends in it.
func resolve(known []string, name string) (string, error) {
	clean := realPath(name)
	var ends []string
	for _, path := range known {
		if path == clean {
			return path, nil
		}
		if !filepath.IsAbs(clean) && strings.HasSuffix(path, string(filepath.Separator)+clean) {
			ends = append(ends, path)
		}
	}
	switch len(ends) {
	case 1:
		return ends[0], nil
	case 0:
		return "", fmt.Errorf("there is no folder %q; use one of these, or omit folder to search all:\n%s", name,
			list(known))
	default:
		return "", fmt.Errorf("%q may be one of several folders; use one of these paths:\n%s", name, list(ends))
	}
}

// realPath returns an absolute path without symbolic links, as the daemon does, if it
// exists, and other paths in their shortest form.
func realPath(path string) string {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) {
		return path
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// noFolders is the error of a search without any folder.
func noFolders(missing []string) error {
	if len(missing) == 0 {
		return errors.New(
			`no folder is indexed; the user must name one when this server is started: docsearch mcp --folder PATH`)
	}
	return fmt.Errorf("no folder is indexed; tell the user:\n%s", list(missing))
}

func paths(folders []api.Folder) []string {
	out := make([]string, len(folders))
	for i, f := range folders {
		out[i] = f.Path
	}
	return out
}

func list(items []string) string { return "- " + strings.Join(items, "\n- ") }

// waitIndexed waits until the folders are indexed for the first time, and tells the client
// of the progress: an agent takes what is not found for what is not there. Only the first
// searches of a large folder wait, then the daemon warns of what is missing. It reports
// whether something is missing.
func (s *Server) waitIndexed(
	ctx context.Context, req *mcp.CallToolRequest, folders []string,
) (missing bool, err error) {
	for told := -1; ; {
		answer, err := s.api.Folders(ctx)
		if err != nil {
			return false, err
		}
		percent := answer.Percent(folders)
		if percent == 100 || time.Now().After(s.waitEnds()) {
			return percent < 100, nil
		}
		if token := req.Params.GetProgressToken(); token != nil && percent > told {
			told = percent
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token,
				Message: "indexing", Progress: float64(percent), Total: 100})
		}
		if !pause.For(ctx, s.indexPoll) {
			return false, context.Cause(ctx)
		}
	}
}

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// scope is what a search looks at.
type scope struct {
	path     string // of the folder, empty: all
	warnings []string
}

// prepare finds the folder that the agent names. If it is being indexed for the first
// time, it waits for that as long as the agent can see progress. The warnings say what
// will be missing from the results.
func (s *Server) prepare(ctx context.Context, req *mcp.CallToolRequest, name string) (scope, error) {
	folders, err := s.api.Folders(ctx)
	if err != nil {
		return scope{}, err
	}
	path, err := s.resolve(folders.Folders, name)
	if err != nil {
		return scope{}, err
	}
	if token := req.Params.GetProgressToken(); token != nil {
		folders, err = s.waitIndexed(ctx, req, path, folders)
		if err != nil {
			return scope{}, err
		}
	}
	return scope{path: path, warnings: shortcomings(within(folders.Folders, path))}, nil
}

// resolve returns the path of the folder that name means: all folders if it is empty,
// else the one with this path, or the only one whose path ends in it.
func (s *Server) resolve(folders []api.Folder, name string) (string, error) {
	if len(folders) == 0 {
		return "", s.noFolders()
	}
	if name == "" {
		return "", nil
	}
	clean := filepath.Clean(name)
	if filepath.IsAbs(clean) {
		if real, err := filepath.EvalSymlinks(clean); err == nil {
			clean = real
		}
	}
	var ends []string
	for _, f := range folders {
		if f.Path == clean {
			return f.Path, nil
		}
		if !filepath.IsAbs(clean) && strings.HasSuffix(f.Path, string(filepath.Separator)+clean) {
			ends = append(ends, f.Path)
		}
	}
	switch len(ends) {
	case 1:
		return ends[0], nil
	case 0:
		return "", fmt.Errorf("there is no folder %q; use one of these, or omit folder to search all:\n%s", name, list(paths(folders)))
	default:
		return "", fmt.Errorf("%q may be one of several folders; use one of these paths:\n%s", name, list(ends))
	}
}

func (s *Server) noFolders() error {
	if len(s.folders) == 0 {
		return errors.New(`no folder is indexed; the user must name one when this server is started: docsearch mcp --folder PATH`)
	}
	return fmt.Errorf("no folder is indexed; the user must check that these exist and can be read:\n%s", list(s.folders))
}

func paths(folders []api.Folder) []string {
	out := make([]string, len(folders))
	for i, f := range folders {
		out[i] = f.Path
	}
	return out
}

func list(items []string) string { return "- " + strings.Join(items, "\n- ") }

// within returns the folders that a search of path looks at.
func within(folders []api.Folder, path string) []api.Folder {
	if path == "" {
		return folders
	}
	for _, f := range folders {
		if f.Path == path {
			return []api.Folder{f}
		}
	}
	return nil
}

// unfinished reports whether the folder is being indexed for the first time.
func unfinished(f api.Folder) bool {
	return f.Status == api.StatusIndexing && f.IndexedAt.IsZero()
}

// waitIndexed waits until the folders of path are indexed for the first time, and
// reports progress meanwhile. It gives up after indexWait.
func (s *Server) waitIndexed(ctx context.Context, req *mcp.CallToolRequest, path string, folders *api.Folders) (*api.Folders, error) {
	deadline := time.Now().Add(s.indexWait)
	for reported := -1; time.Now().Before(deadline); {
		percent, open := progress(within(folders.Folders, path))
		if !open {
			break
		}
		if percent > reported {
			reported = percent
			s.notify(ctx, req, percent)
		}
		if !sleep(ctx, s.indexPoll) {
			return nil, context.Cause(ctx)
		}
		var err error
		if folders, err = s.api.Folders(ctx); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// progress returns the least percentage of the folders that are being indexed for the
// first time, and whether there are any.
func progress(folders []api.Folder) (percent int, open bool) {
	percent = 100
	for _, f := range folders {
		if unfinished(f) {
			percent, open = min(percent, f.Percent), true
		}
	}
	return percent, open
}

func (s *Server) notify(ctx context.Context, req *mcp.CallToolRequest, percent int) {
	err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: req.Params.GetProgressToken(), Progress: float64(percent), Total: 100,
		Message: fmt.Sprintf("Indexing documents: %d %%", percent)})
	if err != nil {
		s.log.Debug("progress not sent", "err", err)
	}
}

// shortcomings says what the index of the folders lacks.
func shortcomings(folders []api.Folder) []string {
	var out []string
	for _, f := range folders {
		switch {
		case unfinished(f):
			out = append(out, fmt.Sprintf("%s is %d %% indexed, so results are incomplete; search again later", f.Path, f.Percent))
		case f.Status == api.StatusMissing:
			out = append(out, fmt.Sprintf("%s is gone; results are from when it was last there", f.Path))
		case f.Warning != "":
			out = append(out, f.Path+": "+f.Warning)
		}
	}
	return out
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/pause"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
)

type searchCommand struct {
	common    `embed:""`
	Query     []string `arg:"" help:"A question, or words, '\"phrases\"', OR, -word, word*, title:word, path:word. The shell must not take the quotes, and -- stands before a query that begins with -."`
	Folder    []string `short:"f" help:"A folder to search; it is indexed first if it is not yet. May be repeated. Without it, all folders of the daemon." sep:"none" placeholder:"PATH"`
	Limit     int      `short:"n" help:"How many documents to print, 1 to 100." default:"10"`
	Passages  int      `help:"How many passages of a document to print, 1 to 20." default:"5"`
	Threshold float64  `help:"Leave out documents with a relevance below this, 0 to 1." default:"0"`
	JSON      bool     `name:"json" help:"Print the answer of the daemon."`
	NoColor   bool     `help:"Print without colours, as NO_COLOR does."`
}

// Run searches once.
func (c *searchCommand) Run(ctx context.Context, p *program) error {
	folders, err := resolve(c.Folder, false)
	if err != nil {
		return err
	}
	daemon, err := c.client(p, slog.LevelWarn, false)
	if err != nil {
		return err
	}
	defer daemon.Close()
	list, err := complete(ctx, p, daemon, folders)
	if err != nil {
		return err
	}
	if len(list.Folders) == 0 {
		return usage{errors.New("no folder is indexed: name one with --folder PATH")}
	}
	found, err := daemon.Search(ctx, api.SearchRequest{
		Folders: folders, Query: strings.Join(c.Query, " "),
		Limit: c.Limit, Threshold: c.Threshold, Passages: c.Passages,
	})
	if err != nil {
		return err
	}
	if wanted := c.wantedModel(); wanted != "" {
		info, err := daemon.Info(ctx)
		if err != nil {
			return err
		}
		if warning := info.ModelWarning(wanted); warning != "" {
			found.Warnings = append(found.Warnings, warning)
		}
	}
	if c.JSON {
		return json.NewEncoder(p.stdout).Encode(found)
	}
	color.NoColor = c.NoColor || p.getenv("NO_COLOR") != "" || !isTerminal(p.stdout)
	printFound(p.stdout, found)
	return nil
}

// complete waits until folders are indexed for the first time: a person who names a
// folder expects what is in it. It returns all folders of the daemon.
func complete(ctx context.Context, p *program, daemon *client.Client, folders []string) (*api.Folders, error) {
	for _, path := range folders {
		if _, err := daemon.AddFolder(ctx, path); err != nil {
			return nil, err
		}
	}
	var bar *progressbar.ProgressBar // nil until there is something to wait for
	for {
		list, err := daemon.Folders(ctx)
		if err != nil {
			return nil, err
		}
		percent := list.Percent(folders)
		if percent < 100 && bar == nil {
			bar = progressbar.NewOptions(100, progressbar.OptionSetWriter(p.stderr),
				progressbar.OptionSetVisibility(isTerminal(p.stderr)),
				progressbar.OptionSetDescription("indexing"), progressbar.OptionSetPredictTime(true),
				progressbar.OptionSetRenderBlankState(true), progressbar.OptionClearOnFinish())
		}
		if bar != nil {
			_ = bar.Set(percent) // a terminal that is gone needs no bar
		}
		if percent == 100 {
			return list, nil
		}
		if !pause.For(ctx, 200*time.Millisecond) {
			return nil, errors.New("interrupted; the daemon goes on to index, until docsearch stop")
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// How results look.
var (
	nameColor      = color.New(color.Bold)
	pathColor      = color.New(color.FgBlue)
	relevanceColor = color.New(color.FgGreen)
	matchColor     = color.New(color.FgYellow, color.Bold)
	warningColor   = color.New(color.FgRed)
)

// printFound prints the results for people.
func printFound(w io.Writer, found *api.SearchResponse) {
	for n, r := range found.Results {
		fmt.Fprintf(w, "%2d. %s  %s\n", n+1, nameColor.Sprint(printable.Text(r.DocumentName)),
			relevanceColor.Sprintf("%.0f %%%s", 100*r.Relevance, r.Reason()))
		for _, p := range append([]api.Passage{r.Passage}, r.MorePassages...) {
			place := fmt.Sprintf("%s:%d", r.Path, p.Location.Line)
			if p.Location.Page > 0 {
				place = fmt.Sprintf("%s, page %d", r.Path, p.Location.Page)
			}
			if p.Location.Heading != "" {
				place += ", " + p.Location.Heading
			}
			why := ""
			if p.FoundBy != r.FoundBy {
				why = relevanceColor.Sprintf("  %.0f %%%s", 100*p.Relevance, p.Reason())
			}
			fmt.Fprintf(w, "    %s%s\n    %s\n\n", pathColor.Sprint(printable.Text(place)), why, coloured(&p))
		}
	}
	if len(found.Results) == 0 {
		fmt.Fprintln(w, "Nothing found.")
	}
	for _, warning := range found.Warnings {
		fmt.Fprintln(w, warningColor.Sprint("Warning: "+printable.Text(warning)))
	}
	noun := "documents"
	if len(found.Results) == 1 {
		noun = "document"
	}
	fmt.Fprintf(w, "%d %s in %.1f ms (%s)\n", len(found.Results), noun, found.Performance.SearchTime,
		found.Performance.ModelUsed)
}

var spaces = regexp.MustCompile(`\s+`)

// coloured returns the snippet of a passage on one line, with its matched words coloured.
func coloured(p *api.Passage) string {
	oneLine := func(text string) string { return printable.Text(spaces.ReplaceAllString(text, " ")) }
	return p.Marked(oneLine, func(word string) string { return matchColor.Sprint(oneLine(word)) })
}

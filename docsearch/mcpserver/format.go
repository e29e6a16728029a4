package mcpserver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

var highlights = strings.NewReplacer(api.HighlightStart, "**", api.HighlightEnd, "**")

// markUp puts each snippet on one line, with its matched words as Markdown.
func markUp(found *api.SearchResponse) {
	if found.Results == nil {
		found.Results = []api.Result{}
	}
	for i := range found.Results {
		r := &found.Results[i]
		r.Snippet = highlights.Replace(oneLine(r.Snippet))
		for k := range r.MorePassages {
			r.MorePassages[k].Snippet = highlights.Replace(oneLine(r.MorePassages[k].Snippet))
		}
	}
}

// oneLine returns the words of text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func formatResults(sc scope, r *api.SearchResponse) string {
	var b strings.Builder
	folder := "all " + count(len(sc.folders), "folder")
	if len(sc.folders) == 1 {
		folder = sc.folders[0]
	}
	fmt.Fprintf(&b, "Folder: %s\n", folder)
	fmt.Fprintf(&b, "Found %s in %.1f ms (%s)\n", count(len(r.Results), "document"), r.Performance.SearchTime, r.Performance.ModelUsed)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", w)
	}
	for i, found := range r.Results {
		formatResult(&b, i+1, found)
	}
	switch {
	case len(r.Results) == 0 && sc.indexing:
		b.WriteString("\nThe index is not complete yet. Search again in a moment.\n")
	case len(r.Results) == 0:
		b.WriteString("\nUse fewer or other words, other forms of them, or a lower threshold (min_score).\n")
	case r.NextCursor != "":
		fmt.Fprintf(&b, "\nMore results: repeat the call with cursor %q.\n", r.NextCursor)
	}
	if len(r.Results) > 0 {
		b.WriteString("\nRead a document: get_document_data with its ID.\n")
	}
	return b.String()
}

func formatResult(b *strings.Builder, number int, r api.Result) {
	fmt.Fprintf(b, "\n%d. %s (%d %%)\n", number, oneLine(r.DocumentName), int(math.Round(r.Relevance*100)))
	fmt.Fprintf(b, "   %s\n   ID: %s\n", oneLine(r.Path), r.DocumentID)
	for _, p := range append([]api.Passage{r.Passage}, r.MorePassages...) {
		fmt.Fprintf(b, "   - %s: %s\n", formatLocation(p.Location), p.Snippet)
		if p.Content != "" {
			fmt.Fprintf(b, "     %s\n", strings.ReplaceAll(strings.TrimSpace(p.Content), "\n", "\n     "))
		}
	}
}

func formatLocation(l api.Location) string {
	var parts []string
	if l.Page > 0 {
		parts = append(parts, fmt.Sprintf("page %d", l.Page))
	}
	if l.EndLine > l.Line {
		parts = append(parts, fmt.Sprintf("lines %d-%d", l.Line, l.EndLine))
	} else {
		parts = append(parts, fmt.Sprintf("line %d", l.Line))
	}
	if l.Heading != "" {
		parts = append(parts, fmt.Sprintf("under %q", l.Heading))
	}
	return strings.Join(parts, ", ")
}

func formatFolders(folders []api.Folder) string {
	if len(folders) == 0 {
		return "No folder is indexed.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", count(len(folders), "folder"))
	for i, f := range folders {
		fmt.Fprintf(&b, "\n%d. %s\n   %s, %s, %s of text", i+1, oneLine(f.Path), formatStatus(f.Status, f.Percent),
			count(f.Documents, "document"), humanize.IBytes(uint64(f.TextBytes)))
		if !f.IndexedAt.IsZero() {
			fmt.Fprintf(&b, ", indexed %s", f.IndexedAt.UTC().Format(time.RFC3339))
		}
		b.WriteByte('\n')
		if len(f.Skipped) > 0 {
			fmt.Fprintf(&b, "   Files left out: %s\n", formatSkipped(f.Skipped))
		}
		if f.Warning != "" {
			fmt.Fprintf(&b, "   Warning: %s\n", oneLine(f.Warning))
		}
	}
	return b.String()
}

// formatSkipped tells how many files are not indexed, and why.
func formatSkipped(skipped map[string]int) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(skipped)) {
		parts = append(parts, fmt.Sprintf("%d %s", skipped[reason], strings.ReplaceAll(reason, "_", " ")))
	}
	return strings.Join(parts, ", ")
}

func formatStatus(s api.Status, percent int) string {
	if s == api.StatusIndexing {
		return fmt.Sprintf("%s (%d %%)", s, percent)
	}
	return string(s)
}

func formatDocument(d *api.Document) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s)\n%s\n", oneLine(d.Name), d.Type, oneLine(d.Path))
	if d.Title != "" && d.Title != d.Name {
		fmt.Fprintf(&b, "Title: %s\n", oneLine(d.Title))
	}
	fmt.Fprintf(&b, "Bytes %d to %d of %d\n\n%s\n", d.Offset, d.Offset+len(d.Text), d.TextBytes, d.Text)
	if d.NextOffset > 0 {
		fmt.Fprintf(&b, "\nThe document goes on: call get_document_data with offset %d.\n", d.NextOffset)
	}
	return b.String()
}

func formatInfo(i *api.ServerInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s\n", i.Name, i.Version, formatStatus(i.Status, i.Percent))
	fmt.Fprintf(&b, "%s, %s, %s, %s of text, %s on disk\n", count(i.Folders, "folder"), count(i.Documents, "document"),
		count(i.Chunks, "passage"), humanize.IBytes(uint64(i.TextBytes)), humanize.IBytes(uint64(i.IndexBytes)))
	switch e := i.Embeddings; {
	case e == nil:
		b.WriteString("Searches are by words alone: there are no embeddings\n")
	case e.LastFailed != "":
		fmt.Fprintf(&b, "Searches are by words alone: the embeddings of %s fail: %s\n", e.Model, e.LastFailed)
	default:
		fmt.Fprintf(&b, "Searches are by words and meaning: %s, for %s\n", e.Model, count(e.Chunks, "passage"))
	}
	fmt.Fprintf(&b, "Formats: %s; files up to %s; endings of words: %s\n", strings.Join(i.Formats, ", "), humanize.IBytes(uint64(i.MaxFile)), i.Language)
	for _, w := range i.Warnings {
		fmt.Fprintf(&b, "Warning: %s\n", w)
	}
	return b.String()
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

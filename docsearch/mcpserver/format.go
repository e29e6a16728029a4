package mcpserver

import (
	"fmt"
	"math"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// formatSnippet returns the snippet of a passage on one line, with its matched words as
// Markdown.
func formatSnippet(p *api.Passage) string {
	asIs := func(text string) string { return text }
	return oneLine(p.Marked(asIs, func(word string) string { return "**" + word + "**" }))
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
	fmt.Fprintf(&b, "Found %s in %.1f ms (%s)\n", count(len(r.Results), "document"), r.Performance.SearchTime,
		r.Performance.ModelUsed)
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
	fmt.Fprintf(b, "\n%d. %s (%d %%%s)\n", number, oneLine(r.DocumentName), int(math.Round(r.Relevance*100)),
		r.Reason())
	fmt.Fprintf(b, "   %s\n   ID: %s\n", oneLine(r.Path), r.DocumentID)
	for _, p := range append([]api.Passage{r.Passage}, r.MorePassages...) {
		why := ""
		if p.FoundBy != r.FoundBy {
			why = fmt.Sprintf(" (%d %%%s)", int(math.Round(p.Relevance*100)), p.Reason())
		}
		fmt.Fprintf(b, "   - %s%s: %s\n", formatLocation(p.Location), why, formatSnippet(&p))
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

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

package extract

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readNotebook reads the cells of a Jupyter notebook, without their output. Headings are
// those of the Markdown cells.
func readNotebook(_ order, data []byte, text *plain.Builder) (title string, err error) {
	var notebook struct {
		Cells []struct {
			Type   string `json:"cell_type"`
			Source lines  `json:"source"`
		} `json:"cells"`
		Version int `json:"nbformat"` // 4 since 2014
	}
	if err := json.Unmarshal(data, &notebook); err != nil {
		return "", err
	}
	if notebook.Version == 0 {
		return "", damaged("it is not a notebook")
	}
	for _, c := range notebook.Cells {
		text.BlankLine()
		at, source := text.Len(), plain.Clean(string(c.Source))
		text.Raw(source)
		if c.Type == "markdown" {
			_, sections := markdown(source)
			for _, s := range sections {
				text.Add(Section{Offset: at + s.Offset, Heading: s.Heading})
			}
		}
	}
	return "", nil
}

// lines is a text, or a list of its lines.
type lines string

func (l *lines) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, (*string)(l)) == nil {
		return nil
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("read the source of a cell: %w", err)
	}
	*l = lines(strings.Join(list, ""))
	return nil
}

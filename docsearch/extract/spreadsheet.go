package extract

import (
	"bytes"

	"github.com/xuri/excelize/v2"

	"github.com/mcp-sse/mcp-sse/docsearch/extract/internal/plain"
)

// readSpreadsheet reads the cells as Excel shows them, row by row. The name of a sheet is
// a heading.
func readSpreadsheet(o order, a *archive, text *plain.Builder) (title string) {
	f, err := excelize.OpenReader(bytes.NewReader(a.data), excelize.Options{
		UnzipSizeLimit: int64(a.left), UnzipXMLSizeLimit: int64(a.left), // no part goes to a temporary file
	})
	if err != nil {
		a.fail(err)
		return ""
	}
	for _, sheet := range f.GetSheetList() {
		text.Sheet(sheet)
		a.fail(readSheet(f, sheet, text, o.MaxText))
	}
	return a.title("docProps/core.xml")
}

func readSheet(f *excelize.File, sheet string, text *plain.Builder, maxText int) error {
	rows, err := f.Rows(sheet)
	if err != nil {
		return nil // a sheet that is a chart
	}
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		for _, cell := range cells {
			text.Tab()
			text.Words(cell)
		}
		text.NewLine()
		if text.Size() > maxText {
			return tooMuchText(maxText)
		}
	}
	return rows.Error()
}

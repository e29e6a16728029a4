package extract

// Document is what a file says.
type Document struct {
	Type     string // text, markdown, html, code, pdf or docx
	Title    string // "" if the file has none
	Text     string // valid UTF-8 without U+E000, U+E001 and NUL
	Sections []Section
}

// Section is where a heading or a page begins.
type Section struct {
	Offset  int    // in bytes, into the text; sections ascend
	Heading string // "" for a mere page
	Page    int    // from 1; 0 in formats without pages
}

package plain

import "strings"

// MaxSections is the most sections of one document. They cost more memory than their
// text: a file of nothing but headings would take forty times its size.
const MaxSections = 10_000

// Section is a part of a document, from its offset to that of the next.
type Section struct {
	Offset  int    `json:"offset"` // in bytes of the text
	Heading string `json:"heading,omitempty"`
	Page    int    `json:"page,omitempty"` // from 1, 0 in formats without pages
}

// Sections collects the sections of a document.
type Sections struct {
	List []Section // by offset, if they were added so
}

// Add appends a section, unless there are MaxSections. The last one has neither heading
// nor page: it ends the one before, because the text after it is not part of that.
func (l *Sections) Add(s Section) {
	if l.Full() {
		return
	}
	if len(l.List) == MaxSections-1 {
		s = Section{Offset: s.Offset}
	}
	s.Heading = strings.Clone(s.Heading) // it may be a part of a buffer that is larger
	l.List = append(l.List, s)
}

// Full reports whether Add does nothing any more.
func (l *Sections) Full() bool { return len(l.List) >= MaxSections }

// Title returns the first heading, which is the title of a document without one.
func (l *Sections) Title() string {
	for _, s := range l.List {
		if s.Heading != "" {
			return s.Heading
		}
	}
	return ""
}

package extract

import "strings"

// maxSections is the most sections of one document. They cost more memory than their
// text: a file of nothing but headings would take forty times its size.
const maxSections = 10_000

// sectionList collects the sections of a document.
type sectionList struct {
	list []Section
}

// add appends a section, unless there are maxSections. The last one has neither heading
// nor page: it ends the one before, because the text after it is not part of that.
func (l *sectionList) add(s Section) {
	if l.full() {
		return
	}
	if len(l.list) == maxSections-1 {
		s = Section{Offset: s.Offset}
	}
	s.Heading = strings.Clone(s.Heading) // it may be a part of a buffer that is larger
	l.list = append(l.list, s)
}

func (l *sectionList) full() bool { return len(l.list) >= maxSections }

// title returns the first heading, which is the title of a document without one.
func (l *sectionList) title() string {
	if len(l.list) == 0 {
		return ""
	}
	return l.list[0].Heading
}

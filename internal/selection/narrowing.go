package selection

import (
	"encoding/json"
	"errors"
	"strings"
)

// maxNarrowing bounds what a client may write to narrow its tools, in bytes.
const maxNarrowing = 8 << 10

// Narrowing is a choice among tools that a client makes for itself: it narrows what there is and never widens it. A nil
// *Narrowing leaves nothing out. It is immutable.
type Narrowing struct {
	URL, Header string // as written; empty: not given
	rules       []*Rules
}

// Narrow returns the narrowing by globs with commas between them, which the URL and the header of a request have. Both
// must allow a tool. Without any it returns nil. The error says which of them cannot be read.
func Narrow(url, header []string) (*Narrowing, error) {
	n := &Narrowing{URL: strings.Join(url, ","), Header: strings.Join(header, ",")}
	for _, part := range []struct {
		given []string
		text  string
	}{{url, n.URL}, {header, n.Header}} {
		if part.given == nil {
			continue
		}
		if len(part.text) > maxNarrowing {
			return nil, errors.New("it is too long: write fewer globs with *")
		}
		globs := strings.Split(part.text, ",")
		for i := range globs {
			globs[i] = strings.TrimSpace(globs[i])
		}
		g, err := compileGlobs(Tools, globs)
		if err != nil {
			return nil, err
		}
		r := &Rules{}
		r.chosen[Tools] = g
		n.rules = append(n.rules, r)
	}
	if n.rules == nil {
		return nil, nil
	}
	return n, nil
}

// Allows reports whether a tool with that name stays.
func (n *Narrowing) Allows(name string) bool {
	if n == nil {
		return true
	}
	for _, r := range n.rules {
		if !r.Name(Tools, name).Allowed() {
			return false
		}
	}
	return true
}

// FilterPage is Rules.FilterPage.
func (n *Narrowing) FilterPage(method string, result json.RawMessage) json.RawMessage {
	if n != nil {
		for _, r := range n.rules {
			result = r.FilterPage(method, result)
		}
	}
	return result
}

// Repeats reports whether a later request of the same client says the same, or nothing, so that its globs need not be
// read again. An empty text says something, which cannot be read.
func (n *Narrowing) Repeats(url, header []string) bool {
	if n == nil {
		return url == nil && header == nil
	}
	repeats := func(given []string, first string) bool {
		return given == nil || first != "" && strings.Join(given, ",") == first
	}
	return repeats(url, n.URL) && repeats(header, n.Header)
}

// Differs reports whether a later request of the same client says something else. One that says nothing does not.
func (n *Narrowing) Differs(later *Narrowing) bool {
	var first, now Narrowing
	if n != nil {
		first = *n
	}
	if later != nil {
		now = *later
	}
	return now.URL != "" && now.URL != first.URL || now.Header != "" && now.Header != first.Header
}

// Key tells narrowings apart.
func (n *Narrowing) Key() string {
	if n == nil {
		return ""
	}
	return n.URL + "\n" + n.Header
}

package docstest_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inside are words for parts and events of the code, which the glossary explains to those who change it. A *look* is
// the noun: everybody may look at something.
var inside = regexp.MustCompile(`(?i)\b(?:suppliers?|bridges?|attachments?|supersed(?:e|es|ed)|resting|` +
	`(?:an?|the|each|every|one|another|first|last|next|second|no) looks?)\b`)

// values matches the parts of a page that a program writes: code, and the address of a link.
var values = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")

// Pages for users say what happens in words of their world. The state `resting` is there as a value alone, but in the
// page that explains it.
func TestPagesForUsersHaveNoWordsOfTheInside(t *testing.T) {
	forUsers := []string{"README.md", "docs/README.md"}
	all := pages(t)
	for _, p := range all {
		if p.path == "docs/README.md" {
			forUsers = append(forUsers, linkedFrom(p, "## To change the code")...)
		}
	}
	if len(forUsers) < 20 {
		t.Fatalf("docs/README.md leads users to %q, want all of their pages", forUsers)
	}
	for _, p := range all {
		if !slices.Contains(forUsers, p.path) || p.path == "docs/glossary.md" {
			continue
		}
		for i, line := range p.prose {
			for _, word := range inside.FindAllString(values.ReplaceAllString(line, ""), -1) {
				if strings.EqualFold(word, "resting") && p.path == "docs/reference/states.md" {
					continue
				}
				t.Errorf("%s:%d has %q, a word of the inside: say what happens", p.path, i+1, word)
			}
		}
	}
}

// linkedFrom returns the pages to which a page leads before a heading, from the root.
func linkedFrom(p page, heading string) (linked []string) {
	for _, line := range p.prose {
		if line == heading {
			break
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#:]+\.md)`).FindAllStringSubmatch(line, -1) {
			linked = append(linked, path.Join(path.Dir(p.path), link[1]))
		}
	}
	return linked
}

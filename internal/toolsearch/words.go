package toolsearch

import (
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// maxWord bounds a word, in bytes. A longer one, such as an encoded file, is not searched.
const maxWord = 64

// stems returns the words of a text in their stems, without those that say nothing. It adds to known the stems that are
// not in it.
func stems(text string, known map[string]string) (all []string) {
	for _, word := range words(text) {
		if empty()[word] || len(word) > maxWord {
			continue
		}
		if known[word] == "" {
			known[word] = stem(word)
		}
		all = append(all, known[word])
	}
	return all
}

// stem returns the stem of an English word in lower case.
func stem(word string) string {
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// words returns the words of a text in lower case. A word ends where neither a letter nor a digit follows, and where
// a capital begins the next one: get_issue, getIssue and HTTPServer have two words each.
func words(text string) (all []string) {
	runes := []rune(strings.ToValidUTF8(text, " "))
	start := 0
	end := func(at, next int) {
		if at > start {
			all = append(all, strings.ToLower(string(runes[start:at])))
		}
		start = next
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end(i, i+1)
		case i > start && unicode.IsUpper(r) && startsWord(runes, i):
			end(i, i)
		}
	}
	end(len(runes), len(runes))
	return all
}

// startsWord reports whether the capital at i, which a letter or digit precedes, begins a word: a small letter stands
// before it, or behind it.
func startsWord(runes []rune, i int) bool {
	return unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])
}

// empty returns the words that say nothing about a tool.
var empty = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(emptyWords) {
		set[word] = true
	}
	return set
})

const emptyWords = `a an and are as at be been but by can could did do does for from had has have he her his how i if in
	into is it its me my of on or our please she so some somebody something that the their them there these they this
	those to up us was we were what when where which who whose will with would you your`

package index

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"github.com/blevesearch/bleve/v2/analysis/token/camelcase"
	unicodewords "github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/registry"
	index "github.com/blevesearch/bleve_index_api"
	"golang.org/x/text/unicode/norm"

	// Stemmers and stop words.
	_ "github.com/blevesearch/bleve/v2/analysis/lang/da"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/de"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/en"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/es"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/fi"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/fr"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/hu"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/it"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/nl"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/no"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ro"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ru"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/sv"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/tr"
)

// Languages are the languages whose words are stemmed. The first is the default.
var Languages = []string{"en", "da", "de", "es", "fi", "fr", "hu", "it", "nl", "no", "ro", "ru", "sv", "tr"}

// The fields of a passage, and of a file.
const (
	fieldText  = "text"
	fieldTitle = "title"
	fieldPath  = "path"
	fieldHash  = "hash" // of the text: the key of its vector
	fieldPlace = "place"
	fieldNames = "names" // of the first passage: title and file name, each as one word

	fieldKind = "kind" // kindDocument or kindSkipped
	fieldName = "name" // the path, as one word that sorts
	fieldFile = "file"

	kindDocument = "document"
	kindSkipped  = "skipped"
)

// The names of our filter and analyzer in bleve's registry.
const (
	wordFilter   = "docsearch_words"
	textAnalyzer = "docsearch_text"
)

var registerFilter = sync.OnceValue(func() error { return registry.RegisterTokenFilter(wordFilter, newWords) })

// newMapping returns how files and passages are indexed, and the words that queries leave
// out unless they have no others.
func newMapping(language string) (*mapping.IndexMappingImpl, analysis.TokenMap, error) {
	if !slices.Contains(Languages, language) {
		return nil, nil, fmt.Errorf("no such language: %q; there are %v", language, Languages)
	}
	if err := registerFilter(); err != nil {
		return nil, nil, err
	}
	m := bleve.NewIndexMapping()
	m.ScoringModel = index.BM25Scoring
	m.StoreDynamic, m.IndexDynamic, m.DocValuesDynamic = false, false, false
	filter := map[string]any{"type": wordFilter, "stemmer": "stemmer_" + language + "_snowball"}
	if err := m.AddCustomTokenFilter(wordFilter, filter); err != nil {
		return nil, nil, err
	}
	if err := m.AddCustomAnalyzer(textAnalyzer, map[string]any{
		"type": custom.Name, "tokenizer": unicodewords.Name, "token_filters": []any{wordFilter},
	}); err != nil {
		return nil, nil, err
	}
	doc := bleve.NewDocumentStaticMapping()
	doc.AddSubDocumentMapping("_all", bleve.NewDocumentDisabledMapping())
	for _, name := range []string{fieldText, fieldTitle, fieldPath} {
		doc.AddFieldMappingsAt(name, &mapping.FieldMapping{Type: "text", Analyzer: textAnalyzer,
			Index: true, IncludeTermVectors: true, Store: name == fieldText})
	}
	for _, name := range []string{fieldKind, fieldName, fieldHash} {
		doc.AddFieldMappingsAt(name, &mapping.FieldMapping{Type: "text", Analyzer: keyword.Name,
			Index: true, SkipFreqNorm: true, DocValues: name == fieldName})
	}
	doc.AddFieldMappingsAt(fieldNames, &mapping.FieldMapping{Type: "text", Analyzer: keyword.Name, Index: true,
		IncludeTermVectors: true})
	for _, name := range []string{fieldPlace, fieldFile} {
		doc.AddFieldMappingsAt(name, &mapping.FieldMapping{Type: "text", Analyzer: keyword.Name, Store: true})
	}
	m.DefaultMapping = doc
	stop, err := registry.NewCache().TokenMapNamed("stop_" + language)
	return m, stop, err
}

// words is a token filter. It cuts tokens at punctuation ("os.Open"), lowers and folds them
// ("Straße" is "strasse"), stems them, and adds the parts of identifiers ("readFile",
// "http_server") to the whole, in its position.
type words struct {
	stemmer analysis.TokenFilter
	camel   *camelcase.CamelCaseFilter
}

func newWords(config map[string]any, cache *registry.Cache) (analysis.TokenFilter, error) {
	name, _ := config["stemmer"].(string)
	stemmer, err := cache.TokenFilterNamed(name)
	if err != nil {
		return nil, err
	}
	return &words{stemmer, camelcase.NewCamelCaseFilter()}, nil
}

// maxWord is how long a token may be, in bytes: longer ones, such as Base64, are cut.
const maxWord = 128

// Filter implements analysis.TokenFilter.
func (w *words) Filter(input analysis.TokenStream) analysis.TokenStream {
	out := make(analysis.TokenStream, 0, len(input)+len(input)/4)
	position := 0
	for _, t := range input {
		for len(t.Term) > 0 {
			n := bytes.IndexFunc(t.Term, isBorder)
			if n < 0 {
				n = len(t.Term)
			}
			if n > 0 {
				position++
				part := &analysis.Token{Start: t.Start, End: t.Start + n, Term: t.Term[:n], Position: position,
					Type: t.Type}
				out = w.add(out, part)
			}
			_, size := utf8.DecodeRune(t.Term[n:])
			t.Term, t.Start = t.Term[n+size:], t.Start+n+size
		}
	}
	return w.stemmer.Filter(out)
}

func isBorder(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && r != '_'
}

// add adds a word, and its parts if it has some.
func (w *words) add(out analysis.TokenStream, t *analysis.Token) analysis.TokenStream {
	if len(t.Term) > maxWord {
		t.Term = bytes.ToValidUTF8(t.Term[:maxWord], nil)
	}
	if isPlain(t.Term) {
		t.Term = lower(t.Term)
		return append(out, t)
	}
	whole := len(out)
	out = append(out, &analysis.Token{Start: t.Start, End: t.End, Term: lower(t.Term), Position: t.Position,
		Type: t.Type})
	for _, part := range w.camel.Filter(analysis.TokenStream{t}) {
		if r, _ := utf8.DecodeRune(part.Term); unicode.IsLetter(r) || unicode.IsNumber(r) {
			part.Term, part.Position = lower(part.Term), t.Position
			out = append(out, part)
		}
	}
	if len(out) == whole+2 { // "_name": the whole has only punctuation more
		out = slices.Delete(out, whole, whole+1)
	}
	return out
}

// isPlain reports whether a word has no parts: its letters are all small, all large, or
// all small but the first, or it is a number.
func isPlain(term []byte) bool {
	all, letters, upper := 0, 0, 0
	for _, r := range string(term) {
		switch {
		case unicode.IsUpper(r):
			upper++
			letters++
		case unicode.IsLetter(r) || unicode.IsMark(r):
			letters++
		case !unicode.IsNumber(r):
			return false
		}
		all++
	}
	first, _ := utf8.DecodeRune(term)
	return letters == 0 || letters == all && (upper == 0 || upper == all || upper == 1 && unicode.IsUpper(first))
}

// lower returns a word in small letters and without accents.
func lower(term []byte) []byte {
	term = bytes.ToLower(term)
	if bytes.IndexFunc(term, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return term
	}
	return bytes.ToLower(asciifolding.New().Filter(norm.NFKC.Bytes(term)))
}

// token is a word as it is in the index.
type token struct {
	word       string
	identifier bool // the whole of an identifier; its parts follow
	part       bool // of the identifier before it
}

// tokens returns the words of a text as they are in the index. A part of an identifier has the
// position of the whole, other words have one of their own. A word that begins with a number, such
// as "30s" or "1st", has parts but is no identifier.
func (x *Index) tokens(text string) (all []token) {
	position := 0
	for _, t := range x.mapping.AnalyzerNamed(textAnalyzer).Analyze([]byte(text)) {
		isPart := t.Position == position
		if isPart && !all[len(all)-1].part {
			first, _ := utf8.DecodeRuneInString(all[len(all)-1].word)
			all[len(all)-1].identifier = !unicode.IsNumber(first)
		}
		position = t.Position
		all = append(all, token{word: string(t.Term), part: isPart})
	}
	return all
}

// analyze returns the words of a text as they are in the index, without the parts of identifiers.
func (x *Index) analyze(text string) (words []string) {
	for _, t := range x.tokens(text) {
		if !t.part {
			words = append(words, t.word)
		}
	}
	return words
}

// oneName returns a name, or a query that may be one, as it is in fieldNames.
func (x *Index) oneName(name string) string { return strings.Join(x.analyze(name), " ") }

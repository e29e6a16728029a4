package index

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"
)

// Query says what to search for. A document may contain the words of Text, or mean the same. It must contain
// phrases in double quotes, title:words and path:words, unless the query has an OR, and
// +words, and must not contain -words. word* finds all words with that beginning. A
// document matches Concepts if it has a word of one of them or means the same, and Terms if it has one of them with its
// words side by side. Letter case, accents, punctuation and the endings of words make no difference.
type Query struct {
	Folders   []string // none for all
	Text      string
	Concepts  []string
	Terms     []string
	Limit     int     // 1-100; 0 is 10
	Passages  int     // of one document, 1-20; 0 is 5
	Threshold float64 // least relevance
	Content   bool    // return the text of the passages
	Cursor    string  // NextCursor of the response before
}

const (
	maxQueryBytes = 2 << 10 // of the text, and of each concept and term; the rest is ignored
	maxQueryWords = 64      // and phrases, and words of a phrase
	leastPrefix   = 2       // letters before * in word*
)

// term is a word of a query, or words that stand side by side.
type term struct {
	words  []string // as they are in the index
	prefix string   // of all words that begin so, if there are no others
	weight float64  // how rare it is
	exact  bool     // the query gives it as an exact term, or as a phrase
}

// plan is a query that was parsed.
type plan struct {
	index            *Index
	must, may, never []query.Query
	terms            []term   // whose matches make a passage relevant
	said             []string // the words of the text, without signs and fields, and without what must not match
	asks             string   // the text for an embedder
}

// hasExact reports whether a passage has an exact term or a phrase of the query.
func (p *plan) hasExact(hit *search.DocumentMatch) bool {
	return slices.ContainsFunc(p.terms, func(t term) bool { return t.exact && t.inAny(hit) })
}

// strict reports whether a passage that does not match the words is no result.
func (p *plan) strict() bool { return len(p.must)+len(p.never) > 0 }

func (p *plan) query() query.Query {
	q := bleve.NewBooleanQuery()
	q.AddMust(p.must...)
	q.AddShould(p.may...)
	q.AddMustNot(p.never...)
	return q
}

// short returns what is searched of a text, a concept or a term.
func short(text string) string { return text[:cutBefore(text, maxQueryBytes)] }

// plan returns the plan of q.
func (x *Index) plan(q *Query) (*plan, error) {
	text := short(q.Text)
	name := short(strings.Join(append(append([]string{text}, q.Concepts...), q.Terms...), " "))
	name = strings.Join(strings.Fields(strings.ReplaceAll(name, `"`, " ")), " ")
	p := &plan{index: x}
	p.parse(text)
	// Exact terms are for words alone.
	p.asks = short(strings.Join(strings.Fields(strings.Join(append(p.said, q.Concepts...), " ")), " "))
	if len(p.must)+len(p.may) == 0 { // all is -words, or nothing but signs
		p.never = nil
		p.addWords(text)
	}
	for _, concept := range q.Concepts {
		p.addWords(short(concept))
	}
	for _, phrase := range q.Terms {
		p.addExact(x.analyze(short(phrase)), &p.may, "")
	}
	if len(p.must)+len(p.may) == 0 {
		return nil, ErrQuery
	}
	if len(p.never) == 0 {
		named := query.NewTermQuery(x.oneName(name))
		named.SetField(fieldNames)
		named.SetBoost(nameBoost)
		p.may = append(p.may, named)
	}
	return p, nil
}

// part is a part of a query: a sign, a field, and a phrase or a word.
var part = regexp.MustCompile(`([+-]?)(?:(title|path):)?(?:"([^"]*)"|([^\s"]+))`)

// parse adds the parts of a query.
func (p *plan) parse(text string) {
	parts := part.FindAllStringSubmatch(text, -1)
	exact := &p.must // phrases, and what names a field
	if slices.ContainsFunc(parts, func(m []string) bool { return m[0] == "OR" }) {
		exact = &p.may
	}
	var words []string // which are added together: stop words count if there are no others
	for _, m := range parts {
		to, field, phrase, word := exact, m[2], m[3], m[4]
		switch m[1] {
		case "+":
			to = &p.must
		case "-":
			to = &p.never
		}
		if m[0] != "OR" && m[1] != "-" {
			p.said = append(p.said, phrase+strings.TrimSuffix(word, "*"))
		}
		bare := field == "" && word != ""
		if bare && m[1] == "" {
			to = &p.may
		}
		start, more := strings.CutSuffix(word, "*")
		switch {
		case m[0] == "OR":
		case bare && more && len(start) >= leastPrefix && !strings.Contains(start, "*"):
			p.addPrefix(start, to)
		case bare && m[1] == "":
			words = append(words, word)
		case phrase != "" && m[1] != "-":
			p.addExact(p.index.analyze(phrase), to, field)
		default:
			p.addTerm(p.index.analyze(phrase+word), to, field)
		}
	}
	p.addWords(strings.Join(words, " "))
}

// addExact adds a term as addTerm does, and ranks passages with the term first.
func (p *plan) addExact(words []string, to *[]query.Query, field string) {
	p.addTerm(words, to, field)
	for i := range p.terms {
		if slices.Equal(p.terms[i].words, words) {
			p.terms[i].exact = true
		}
	}
}

// addPrefix adds the words that begin so. Only the index knows them.
func (p *plan) addPrefix(start string, to *[]query.Query) {
	if len(p.terms)+len(p.never) >= maxQueryWords {
		return
	}
	start = string(lower([]byte(start)))
	q := query.NewPrefixQuery(start)
	q.SetField(fieldText)
	*to = append(*to, q)
	if to != &p.never { // what must not match makes nothing relevant
		p.terms = append(p.terms, term{prefix: start})
	}
}

// addWords adds words that a passage may have.
func (p *plan) addWords(text string) {
	var kept [][]token
	for _, stop := range []bool{true, false} {
		for word := range strings.FieldsSeq(text) {
			found := p.index.tokens(word)
			if stop && len(found) == 1 && p.index.stop[strings.ToLower(strings.Trim(word, `.,;:!?"'()`))] {
				continue
			}
			if len(found) > 0 && len(kept) < maxQueryWords {
				kept = append(kept, found)
			}
		}
		if len(kept) > 0 {
			break
		}
	}
	for _, found := range kept {
		for _, one := range found {
			if one.identifier {
				p.addExact([]string{one.word}, &p.may, "")
			} else {
				p.addTerm([]string{one.word}, &p.may, "")
			}
		}
	}
}

// addTerm adds words that stand side by side in one field, or in any.
func (p *plan) addTerm(words []string, to *[]query.Query, field string) {
	if len(words) == 0 || len(p.terms)+len(p.never) >= maxQueryWords {
		return
	}
	words = words[:min(len(words), maxQueryWords)]
	for _, t := range p.terms {
		if slices.Equal(t.words, words) && field == "" && to == &p.may {
			return
		}
	}
	if to != &p.never {
		p.terms = append(p.terms, term{words: words})
	}
	var fields []query.Query
	for _, f := range textFields {
		if field != "" && field != f.name {
			continue
		}
		var q query.BoostableQuery = query.NewPhraseQuery(words, f.name)
		if len(words) == 1 {
			one := query.NewTermQuery(words[0])
			one.SetField(f.name)
			q = one
		}
		q.SetBoost(f.weight)
		fields = append(fields, q)
	}
	*to = append(*to, query.NewDisjunctionQuery(fields))
}

// textFields are the fields of words, and how much a match there counts.
var textFields = []textField{{fieldText, 1}, {fieldTitle, 3}, {fieldPath, 2}}

type textField struct {
	name   string
	weight float64
}

// weigh sets the weights of the terms: their inverse document frequencies in some folders.
func (p *plan) weigh(ctx context.Context, all []*folder) error {
	known := map[string]float64{}
	for _, t := range p.terms {
		for _, w := range t.words {
			known[w] = 0
		}
	}
	total := 0.0
	for _, f := range all {
		total += float64(f.record.Load().Chunks)
		err := f.read("search", func(r index.IndexReader) error {
			for w, n := range known {
				terms, err := r.TermFieldReader(ctx, []byte(w), fieldText, false, false, false)
				if err != nil {
					return err
				}
				known[w] = n + float64(terms.Count())
				if err := terms.Close(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	rare := math.Log(1 + (total+0.5)/0.5)
	for i := range p.terms {
		t := &p.terms[i]
		if len(t.words) == 0 {
			t.weight = rare / 2
		}
		for _, w := range t.words {
			t.weight += math.Log(1 + max(0, total-known[w]+0.5)/(known[w]+0.5))
		}
	}
	return nil
}

const (
	saturation = 1.2  // the k1 of BM25: so many matches of a term count half
	nearShare  = 0.3  // of what a passage lacks, that it gets if all words stand together
	nameShare  = 0.95 // and if the query is the name or the title of its document
	nameBoost  = 10   // of such a document among the candidates
)

// relevance tells how relevant a passage is by its words, from 0 to 1: BM25F as a share of
// what it can be at most. One that has each word once, in its text, gets 0.45; more for
// more matches, for those in the title or the path, for words that stand together, and
// for the name.
func (p *plan) relevance(hit *search.DocumentMatch) float64 {
	sum, most := 0.0, 0.0
	near, pairs := 0, 0
	for i, t := range p.terms {
		n := 0.0
		for _, f := range textFields {
			n += f.weight * float64(t.count(hit.Locations[f.name]))
		}
		sum += t.weight * n / (n + saturation)
		most += t.weight
		if i > 0 && len(t.words) > 0 && len(p.terms[i-1].words) > 0 {
			pairs++
			if both := (term{words: slices.Concat(p.terms[i-1].words, t.words)}); both.inAny(hit) {
				near++
			}
		}
	}
	if most == 0 {
		return 0
	}
	words := sum / most
	lacks := 1 - words
	if pairs > 0 {
		lacks *= 1 - nearShare*words*float64(near)/float64(pairs)
	}
	if len(hit.Locations[fieldNames]) > 0 {
		lacks *= 1 - nameShare
	}
	return 1 - lacks
}

func (t term) inAny(hit *search.DocumentMatch) bool {
	return slices.ContainsFunc(textFields, func(f textField) bool { return t.count(hit.Locations[f.name]) > 0 })
}

// count returns how often the term is in a field.
func (t term) count(found search.TermLocationMap) (n int) {
	if len(t.words) == 0 {
		for word := range found {
			if strings.HasPrefix(word, t.prefix) {
				n++
			}
		}
		return n
	}
	for _, at := range found[t.words[0]] {
		next := at.Pos
		if !slices.ContainsFunc(t.words[1:], func(word string) bool {
			next++
			return !slices.ContainsFunc(found[word], func(l *search.Location) bool { return l.Pos == next })
		}) {
			n++
		}
	}
	return n
}

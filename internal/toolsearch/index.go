package toolsearch

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// Tool is a tool that can be found.
type Tool struct {
	Name string          // as it is called, with the name of its server
	Raw  json.RawMessage // its entry of a list
}

// The weights of a tool's fields: how often a word in it counts.
const (
	nameWeight        = 3
	titleWeight       = 2
	descriptionWeight = 1
	argumentWeight    = 0.5 // the name of an argument, and its description
)

// The usual constants of BM25: how soon more of the same word counts no more, and how much a long text loses.
const (
	saturation    = 1.2
	lengthPenalty = 0.75
)

// synonymWeight is what a word counts that only means the same as that of the question.
const synonymWeight = 0.5

// The bounds of what is read: of the text of a tool, and of a question. The rest of a longer one is not searched.
const (
	maxText     = 16 << 10 // bytes of a title or a description
	maxQuestion = 1 << 10
	maxTerms    = 64 // of a question
)

// Index finds tools of a list.
type Index struct {
	tools    []Tool
	lengths  []float64 // of each tool, in words by their weights
	average  float64
	postings map[string][]posting // by the stem, in the order of the tools
}

// posting says how often a tool has a word, by the weights of its fields.
type posting struct {
	tool  int
	count float64
}

// New returns an index of tools. Of two that are equally good, the first is found first.
func New(tools []Tool) *Index {
	ix := &Index{tools: tools, lengths: make([]float64, len(tools)), postings: make(map[string][]posting)}
	known := make(map[string]string)
	for i, tool := range tools {
		counts := countsOf(tool, known)
		for stem, count := range counts {
			ix.postings[stem] = append(ix.postings[stem], posting{i, count})
			ix.lengths[i] += count
		}
		ix.average += ix.lengths[i] / float64(len(tools))
	}
	return ix
}

// countsOf returns how often a tool has each word, by the weights of its fields. known has the stems that are known, by
// their words.
func countsOf(tool Tool, known map[string]string) map[string]float64 {
	counts := make(map[string]float64)
	add := func(text string, weight float64) {
		for _, stem := range stems(text[:min(maxText, len(text))], known) {
			counts[stem] += weight
		}
	}
	add(tool.Name, nameWeight)
	title, ok := rawjson.MemberText(tool.Raw, "title")
	if !ok {
		title, _ = rawjson.MemberText(tool.Raw, "annotations", "title")
	}
	add(title, titleWeight)
	description, _ := rawjson.MemberText(tool.Raw, "description")
	add(description, descriptionWeight)
	properties, _ := rawjson.Member(tool.Raw, "inputSchema", "properties")
	var arguments map[string]json.RawMessage
	_ = json.Unmarshal(properties, &arguments) // anything but an object has no arguments
	for name, schema := range arguments {
		add(name, argumentWeight)
		text, _ := rawjson.MemberText(schema, "description")
		add(text, argumentWeight)
	}
	return counts
}

// Find returns the tools that answer a question best, the best first, limit of them at most. allowed reports whether a
// tool may be found; nil: each may.
func (ix *Index) Find(question string, limit int, allowed func(name string) bool) []Tool {
	scores := make(map[int]float64) // by the tool
	for _, term := range termsOf(question) {
		best := ix.scores(term, 1)
		for _, other := range synonyms()[term] {
			for tool, score := range ix.scores(other, synonymWeight) {
				best[tool] = max(best[tool], score)
			}
		}
		for tool, score := range best {
			scores[tool] += score
		}
	}
	found := make([]int, 0, len(scores))
	for tool := range scores {
		if allowed == nil || allowed(ix.tools[tool].Name) {
			found = append(found, tool)
		}
	}
	slices.SortFunc(found, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b))
	})
	tools := make([]Tool, min(limit, len(found)))
	for i := range tools {
		tools[i] = ix.tools[found[i]]
	}
	return tools
}

// scores returns what a word adds to the score of each tool that has it.
func (ix *Index) scores(stem string, weight float64) map[int]float64 {
	with := ix.postings[stem]
	all, having := float64(len(ix.tools)), float64(len(with))
	rarity := weight * math.Log(1+(all-having+0.5)/(having+0.5))
	scores := make(map[int]float64, len(with))
	for _, p := range with {
		length := 1 - lengthPenalty + lengthPenalty*ix.lengths[p.tool]/ix.average
		scores[p.tool] = rarity * p.count * (saturation + 1) / (p.count + saturation*length)
	}
	return scores
}

// termsOf returns the words of a question, each once.
func termsOf(question string) (terms []string) {
	for _, stem := range stems(question[:min(maxQuestion, len(question))], make(map[string]string)) {
		if len(terms) < maxTerms && !slices.Contains(terms, stem) {
			terms = append(terms, stem)
		}
	}
	return terms
}

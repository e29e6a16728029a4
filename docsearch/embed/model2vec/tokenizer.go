package model2vec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// tokenizer cuts a text into tokens as the tokenizers library of Hugging Face does with the
// same file, as far as models of model2vec need it: WordPiece and Unigram. What it does not
// know is refused when the file is read. One difference is known: the map of characters of a
// Precompiled normalizer is taken for NFKC.
type tokenizer struct {
	normalize []func(string) string
	split     []func([]string) []string
	model     interface {
		// cut appends the tokens of a word, and returns how many are unknown, too.
		cut(ids []int, word string) ([]int, int)
		most() int // the largest token
		bytes() int64
	}
}

// part is a normalizer or a pre-tokenizer of the file; types use some of the fields.
type part struct {
	Type          string          `json:"type"`
	Normalizers   []part          `json:"normalizers"`
	PreTokenizers []part          `json:"pretokenizers"`
	CleanText     bool            `json:"clean_text"`
	Chinese       bool            `json:"handle_chinese_chars"`
	StripAccents  *bool           `json:"strip_accents"` // nil: as Lowercase
	Lowercase     bool            `json:"lowercase"`
	Pattern       json.RawMessage `json:"pattern"`
	Content       string          `json:"content"`
	Prepend       string          `json:"prepend"`
	Replacement   string          `json:"replacement"`
	PrependScheme string          `json:"prepend_scheme"`
	AddPrefix     *bool           `json:"add_prefix_space"`
	Left          bool            `json:"strip_left"`
	Right         bool            `json:"strip_right"`
	Behavior      string          `json:"behavior"`
}

const maxParts = 32 // of a file, at any depth

// readTokenizer reads a tokenizer.json.
func readTokenizer(data []byte) (*tokenizer, error) {
	var file struct {
		Normalizer   *part           `json:"normalizer"`
		PreTokenizer *part           `json:"pre_tokenizer"`
		Model        json.RawMessage `json:"model"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("it is no tokenizer: %w", err)
	}
	t := &tokenizer{}
	if file.Normalizer != nil {
		if err := t.addNormalizer(file.Normalizer); err != nil {
			return nil, err
		}
	}
	if file.PreTokenizer != nil {
		if err := t.addSplit(file.PreTokenizer); err != nil {
			return nil, err
		}
	}
	if len(t.normalize)+len(t.split) > maxParts {
		return nil, fmt.Errorf("it has more than %d normalizers and pre-tokenizers", maxParts)
	}
	return t, t.readModel(file.Model)
}

func (t *tokenizer) readModel(data json.RawMessage) (err error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("its model: %w", err)
	}
	switch head.Type {
	case "WordPiece":
		t.model, err = readWordPiece(data)
	case "Unigram":
		t.model, err = readUnigram(data)
	default:
		err = fmt.Errorf("its model is of the type %.40q; WordPiece and Unigram are read", head.Type)
	}
	return err
}

func (t *tokenizer) most() int { return t.model.most() }

// tokens returns the tokens of a text that are known, and how many are not.
func (t *tokenizer) tokens(text string) (ids []int, unknown int) {
	text = strings.ToValidUTF8(text, "")
	for _, normalize := range t.normalize {
		text = normalize(text)
	}
	words := []string{text}
	for _, split := range t.split {
		words = split(words)
	}
	for _, word := range words {
		missing := 0
		if word != "" {
			ids, missing = t.model.cut(ids, word)
		}
		unknown += missing
		if len(ids) >= maxTokens {
			break
		}
	}
	return ids, unknown
}

func (t *tokenizer) addNormalizer(p *part) error {
	add := func(f func(string) string) { t.normalize = append(t.normalize, f) }
	switch p.Type {
	case "Sequence":
		for i := range p.Normalizers {
			if err := t.addNormalizer(&p.Normalizers[i]); err != nil {
				return err
			}
		}
	case "BertNormalizer":
		add(p.bert)
	case "Lowercase":
		add(strings.ToLower)
	case "NFC":
		add(norm.NFC.String)
	case "NFD":
		add(norm.NFD.String)
	case "NFKD":
		add(norm.NFKD.String)
	case "NFKC", "Precompiled", "Nmt":
		add(norm.NFKC.String)
	case "StripAccents":
		add(stripMarks)
	case "Strip":
		if !p.Left || !p.Right {
			return errors.New("its normalizer Strip is of one side; both are read")
		}
		add(strings.TrimSpace)
	case "Prepend":
		add(func(s string) string { return p.Prepend + s })
	case "Replace":
		pattern, err := p.pattern()
		if err != nil {
			return err
		}
		add(func(s string) string { return pattern.ReplaceAllLiteralString(s, p.Content) })
	default:
		return fmt.Errorf("its normalizer %.40q is not known", p.Type)
	}
	return nil
}

// pattern returns what a part looks for.
func (p *part) pattern() (*regexp.Regexp, error) {
	var one struct{ String, Regex *string }
	if err := json.Unmarshal(p.Pattern, &one); err != nil {
		return nil, fmt.Errorf("its pattern: %w", err)
	}
	switch {
	case one.String != nil:
		return regexp.MustCompile(regexp.QuoteMeta(*one.String)), nil
	case one.Regex != nil:
		pattern, err := regexp.Compile(*one.Regex)
		if err != nil {
			return nil, fmt.Errorf("its pattern: %w", err)
		}
		return pattern, nil
	}
	return nil, errors.New("its pattern is neither String nor Regex")
}

func stripMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s))
}

// bert is what the BertNormalizer does.
func (p *part) bert(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case p.CleanText && unicode.IsSpace(r):
			b.WriteByte(' ')
		case p.CleanText && (r == 0 || r == utf8.RuneError || unicode.Is(unicode.C, r)):
		case p.Chinese && unicode.Is(unicode.Han, r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	s = b.String()
	if p.StripAccents == nil && p.Lowercase || p.StripAccents != nil && *p.StripAccents {
		s = stripMarks(s)
	}
	if p.Lowercase {
		s = strings.ToLower(s)
	}
	return s
}

func (t *tokenizer) addSplit(p *part) error {
	add := func(f func(word string) []string) {
		t.split = append(t.split, func(words []string) (all []string) {
			for _, word := range words {
				all = append(all, f(word)...)
			}
			return all
		})
	}
	switch p.Type {
	case "Sequence":
		for i := range p.PreTokenizers {
			if err := t.addSplit(&p.PreTokenizers[i]); err != nil {
				return err
			}
		}
	case "BertPreTokenizer":
		add(func(s string) []string { return splitPunctuation(strings.Fields(s)) })
	case "Punctuation":
		if p.Behavior != "" && p.Behavior != "Isolated" {
			return fmt.Errorf("its pre-tokenizer Punctuation has the behavior %.40q; Isolated is read", p.Behavior)
		}
		add(func(s string) []string { return splitPunctuation([]string{s}) })
	case "Whitespace":
		pattern := regexp.MustCompile(`[\p{L}\p{M}\p{N}_]+|[^\p{L}\p{M}\p{N}_\s]+`)
		add(func(s string) []string { return pattern.FindAllString(s, -1) })
	case "WhitespaceSplit":
		add(strings.Fields)
	case "Metaspace":
		add(p.metaspace)
	default:
		return fmt.Errorf("its pre-tokenizer %.40q is not known", p.Type)
	}
	return nil
}

// splitPunctuation makes each punctuation mark a word of its own.
func splitPunctuation(words []string) (all []string) {
	for _, word := range words {
		from := 0
		for i, r := range word {
			if unicode.IsPunct(r) || r < utf8.RuneSelf && unicode.IsSymbol(r) {
				if i > from {
					all = append(all, word[from:i])
				}
				from = i + utf8.RuneLen(r)
				all = append(all, word[i:from])
			}
		}
		if from < len(word) {
			all = append(all, word[from:])
		}
	}
	return all
}

// metaspace puts a mark in the place of each space, and one before the text, and cuts before
// the marks.
func (p *part) metaspace(s string) (all []string) {
	mark := p.Replacement
	if mark == "" {
		mark = "▁"
	}
	s = strings.ReplaceAll(s, " ", mark)
	prepend := p.PrependScheme == "" && (p.AddPrefix == nil || *p.AddPrefix) || p.PrependScheme == "always" ||
		p.PrependScheme == "first"
	if prepend && !strings.HasPrefix(s, mark) {
		s = mark + s
	}
	for s != "" {
		end := strings.Index(s[min(len(mark), len(s)):], mark)
		if end < 0 {
			return append(all, s)
		}
		end += len(mark)
		all = append(all, s[:end])
		s = s[end:]
	}
	return all
}

// wordPiece cuts a word into the longest pieces that are known, from the left.
type wordPiece struct {
	Vocabulary map[string]int `json:"vocab"`
	Unknown    string         `json:"unk_token"`
	Prefix     *string        `json:"continuing_subword_prefix"`
	MaxLetters int            `json:"max_input_chars_per_word"`

	unknown, largest, longest int
}

const maxPiece = 256 // bytes of a piece

func readWordPiece(data []byte) (*wordPiece, error) {
	w := &wordPiece{unknown: -1}
	if err := json.Unmarshal(data, w); err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	if len(w.Vocabulary) == 0 {
		return nil, errors.New("its model has no tokens")
	}
	if w.Prefix == nil {
		w.Prefix = new("##")
	}
	if w.MaxLetters <= 0 || w.MaxLetters > maxPiece {
		w.MaxLetters = 100
	}
	if id, ok := w.Vocabulary[w.Unknown]; ok {
		w.unknown = id
	}
	for token, id := range w.Vocabulary {
		if id < 0 || id > maxRows {
			return nil, fmt.Errorf("its token %.40q has the number %d", token, id)
		}
		w.largest = max(w.largest, id)
		w.longest = max(w.longest, min(len(token), maxPiece))
	}
	return w, nil
}

// pieceBytes is how much memory a piece takes in a map, with its text and its number, about.
const pieceBytes = 64

func (w *wordPiece) most() int { return w.largest }

func (w *wordPiece) bytes() int64 { return pieceBytes * int64(len(w.Vocabulary)) }

func (w *wordPiece) cut(ids []int, word string) ([]int, int) {
	if utf8.RuneCountInString(word) > w.MaxLetters {
		return ids, 1
	}
	before := len(ids)
	prefix := ""
	for word != "" {
		id, length := -1, 0
		for end := min(len(word), w.longest); end > 0; end-- {
			if end < len(word) && !utf8.RuneStart(word[end]) {
				continue
			}
			if known, ok := w.Vocabulary[prefix+word[:end]]; ok {
				id, length = known, end
				break
			}
		}
		if id < 0 || id == w.unknown {
			return ids[:before], 1
		}
		ids = append(ids, id)
		word, prefix = word[length:], *w.Prefix
	}
	return ids, 0
}

// unigram cuts a word into the pieces whose scores have the largest sum.
type unigram struct {
	pieces  map[string]int
	scores  []float64
	unknown int // the token of what is not known; -1: none
	longest int // bytes of a piece
	penalty float64
}

const unknownPenalty = 10 // below the least score

func readUnigram(data []byte) (*unigram, error) {
	var file struct {
		Vocabulary [][2]any `json:"vocab"`
		Unknown    *int     `json:"unk_id"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("its model: %w", err)
	}
	if len(file.Vocabulary) == 0 || len(file.Vocabulary) > maxRows {
		return nil, fmt.Errorf("its model has %d tokens", len(file.Vocabulary))
	}
	u := &unigram{pieces: make(map[string]int, len(file.Vocabulary)), unknown: -1}
	least := 0.0
	for id, entry := range file.Vocabulary {
		piece, isText := entry[0].(string)
		score, isNumber := entry[1].(float64)
		if !isText || !isNumber || math.IsNaN(score) || math.Abs(score) > 1e6 {
			return nil, fmt.Errorf("its token %d is no piece with a score", id)
		}
		if piece != "" && len(piece) <= maxPiece {
			u.pieces[piece] = id
			u.longest = max(u.longest, len(piece))
		}
		u.scores = append(u.scores, score)
		least = min(least, score)
	}
	if file.Unknown != nil {
		u.unknown = *file.Unknown
	}
	u.penalty = least - unknownPenalty
	return u, nil
}

func (u *unigram) most() int { return len(u.scores) - 1 }

func (u *unigram) bytes() int64 { return pieceBytes * int64(len(u.pieces)) }

// maxLattice is how long a word may be, in bytes: a longer one is no word.
const maxLattice = 4096

func (u *unigram) cut(ids []int, word string) ([]int, int) {
	word = word[:min(len(word), maxLattice)]
	// best[i] is the best way to cut word[:i].
	type way struct {
		score float64
		from  int
		id    int // -1: not known
	}
	best := make([]way, len(word)+1)
	for i := range best {
		best[i].score = math.Inf(-1)
	}
	best[0].score = 0
	take := func(from, to, id int, score float64) {
		if sum := best[from].score + score; sum > best[to].score {
			best[to] = way{sum, from, id}
		}
	}
	for from := range len(word) {
		if math.IsInf(best[from].score, -1) {
			continue
		}
		_, size := utf8.DecodeRuneInString(word[from:])
		take(from, from+size, -1, u.penalty)
		for to := from + size; to <= min(len(word), from+u.longest); to++ {
			if id, ok := u.pieces[word[from:to]]; ok && id != u.unknown {
				take(from, to, id, u.scores[id])
			}
		}
	}
	unknown := 0
	first := len(ids)
	for at := len(word); at > 0; at = best[at].from {
		if best[at].id < 0 {
			unknown++
		} else {
			ids = append(ids, best[at].id)
		}
	}
	for i, k := first, len(ids)-1; i < k; i, k = i+1, k-1 {
		ids[i], ids[k] = ids[k], ids[i]
	}
	return ids, unknown
}

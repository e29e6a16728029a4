package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
)

// writeFolder writes a model2vec folder: each word is a token.
func writeFolder(dir string, all []vector) error {
	vocabulary := map[string]int{"[PAD]": 0, "[UNK]": 1}
	dimensions := len(all[0].numbers)
	rows := make([]byte, 2*4*dimensions) // of the two tokens before the words
	for i, v := range all {
		vocabulary[v.word] = i + 2
		for _, f := range v.numbers {
			rows = binary.LittleEndian.AppendUint32(rows, math.Float32bits(float32(f)))
		}
	}
	tokenizer, err := json.Marshal(map[string]any{
		"version":       "1.0",
		"normalizer":    map[string]any{"type": "BertNormalizer", "clean_text": true, "lowercase": true},
		"pre_tokenizer": map[string]any{"type": "BertPreTokenizer"},
		"model": map[string]any{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
			"max_input_chars_per_word": 100, "vocab": vocabulary},
	})
	if err != nil {
		return err
	}
	head, err := json.Marshal(map[string]any{"embeddings": map[string]any{"dtype": "F32",
		"shape": []int{len(all) + 2, dimensions}, "data_offsets": []int{0, len(rows)}}})
	if err != nil {
		return err
	}
	tensors := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	tensors = append(append(tensors, head...), rows...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer, 0o644),
		os.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, 0o644),
		os.WriteFile(filepath.Join(dir, "config.json"),
			[]byte(`{"model_type":"model2vec","normalize":true}`+"\n"), 0o644))
}

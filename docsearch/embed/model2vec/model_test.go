package model2vec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/model2vec"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tensors returns a safetensors file: its header, and what follows.
func tensors(header any, numbers ...[]byte) []byte {
	head, ok := header.(string)
	if !ok {
		data, err := json.Marshal(header)
		if err != nil {
			panic(err)
		}
		head = string(data)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(file, head...), bytes.Join(numbers, nil)...)
}

func entry(kind string, from, to int, shape ...int) map[string]any {
	return map[string]any{"dtype": kind, "shape": shape, "data_offsets": []int{from, to}}
}

func floats(all ...float32) (data []byte) {
	for _, f := range all {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return data
}

const wordPiece = `{"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","unk_token":"[UNK]",
"vocab":{"[UNK]":0,"sea":1,"side":2,"##side":3,"!":4}}}`

const unigram = `{"normalizer":{"type":"Sequence","normalizers":[{"type":"Precompiled","precompiled_charsmap":"AAAA"},
{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},"pre_tokenizer":{"type":"Metaspace","replacement":"▁",
"prepend_scheme":"always"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁sea",-1],["▁",-2],["side",-3],["s",-9]]}}`

// five are the vectors of five tokens: each has a dimension of its own.
func five(weights ...float32) []byte {
	rows := make([]float32, 25)
	for i := range 5 {
		rows[6*i] = 1
	}
	header := map[string]any{"embeddings": entry("F32", 0, 100, 5, 5), "__metadata__": map[string]string{"format": "pt"}}
	if len(weights) > 0 {
		header["weights"] = entry("F32", 100, 100+4*len(weights), len(weights))
	}
	return tensors(header, floats(rows...), floats(weights...))
}

// folder writes a model2vec folder.
func folder(t testing.TB, tensors []byte, tokenizer string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{model2vec.TensorsFile: tensors, model2vec.TokenizerFile: []byte(tokenizer)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTokens embeds texts with vectors that tell the tokens apart.
func TestTokens(t *testing.T) {
	halves := binary.LittleEndian.AppendUint16(nil, 0x3c00)   // 1
	halves = append(halves, make([]byte, 4)...)               // two zeros
	halves = binary.LittleEndian.AppendUint16(halves, 0xc000) // -2
	for name, tc := range map[string]struct {
		tensors   []byte
		tokenizer string
		want      map[string]string
	}{
		"WordPiece": {five(), wordPiece, map[string]string{"sea": "[0 1 0 0 0]", "Séaside, side!": "[0 1 1 1 1]", "xyz": "[0 0 0 0 0]",
			"sea xyz": "[0 1 0 0 0]", "sea xyz zyx": "[0 0 0 0 0]", "": "[0 0 0 0 0]", "\xffsea\x00": "[0 1 0 0 0]", "seaxyz": "[0 0 0 0 0]"}},
		"weights": {five(1, 3, 1, 0.5, 1), wordPiece, map[string]string{"seaside": "[0 3 0 0.5 0]"}},
		"Unigram": {five(), unigram, map[string]string{"sea": "[0 1 0 0 0]", "seaside  side": "[0 1 1 2 0]", "ｓｅａ": "[0 1 0 0 0]",
			"日本語": "[0 0 0 0 0]"}},
		"F16 and mapping": {tensors(map[string]any{"embeddings": entry("F16", 0, 8, 2, 2), "mapping": entry("I32", 8, 28, 5)}, halves,
			[]byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), wordPiece, map[string]string{"sea": "[0 -2]", "side": "[1 0]"}},
	} {
		m, err := model2vec.Open(folder(t, tc.tensors, tc.tokenizer))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for text, want := range tc.want {
			got, err := m.Embed(t.Context(), []string{text})
			for i := range got[0] {
				got[0][i] = float32(math.Round(float64(got[0][i])*100) / 100)
			}
			if err != nil || fmt.Sprint(got[0]) != want {
				t.Errorf("%s: %q: got %v, %v, want %s", name, text, got[0], err, want)
			}
		}
	}
}

// TestFolderOfMakemodel reads a folder that makemodel has made.
func TestFolderOfMakemodel(t *testing.T) {
	m, err := model2vec.Open("testdata/small")
	if err != nil {
		t.Fatal(err)
	}
	if name := m.Model(); !strings.HasPrefix(name, "small-") || len(name) != len("small-")+8 {
		t.Errorf("the model is called %s", name)
	}
	all, err := m.Embed(t.Context(), []string{"the president of the country", "a government minister", "the team won the game"})
	if err != nil {
		t.Fatal(err)
	}
	if same, other := cosine(all[0], all[1]), cosine(all[0], all[2]); same < other+0.2 {
		t.Errorf("the same meaning has %.2f, another %.2f", same, other)
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestBadFilesAreRefused(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	good := five()
	one := func(kind string, from, to int, shape ...int) []byte {
		return tensors(map[string]any{"embeddings": entry(kind, from, to, shape...)}, floats(1, 2, 3, 4))
	}
	for name, tc := range map[string]struct {
		tensors         []byte
		tokenizer, want string
	}{
		"empty":                {nil, wordPiece, "too few"},
		"cut in the header":    {good[:20], wordPiece, "its header has"},
		"cut in the numbers":   {good[:len(good)-1], wordPiece, "goes from 0 to 100"},
		"long header":          {append(binary.LittleEndian.AppendUint64(nil, 1<<20+1), make([]byte, 2<<20)...), wordPiece, "1048576 are allowed"},
		"endless header":       {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), wordPiece, "its header has"},
		"no JSON":              {tensors("{{}}"), wordPiece, "its header: "},
		"no embeddings":        {tensors(map[string]any{"other": entry("F32", 0, 0)}), wordPiece, "no tensor embeddings"},
		"type":                 {one("BF16", 0, 8, 2, 2), wordPiece, "of the type"},
		"one dimension":        {one("F32", 0, 16, 4), wordPiece, "has the shape"},
		"shape and bytes":      {one("F32", 0, 16, 2, 3), wordPiece, "has the shape"},
		"overflow":             {one("F32", 0, 16, 1<<62, 1<<62), wordPiece, "has the shape"},
		"overflow to the size": {one("F32", 0, 16, 1<<32, 1<<32), wordPiece, "has the shape"},
		"negative":             {one("F32", 0, 16, -2, -2), wordPiece, "has the shape"},
		"backwards":            {one("F32", 16, 0, 2, 2), wordPiece, "goes from"},
		"before the file":      {one("F32", -16, 0, 2, 2), wordPiece, "goes from"},
		"NaN":                  {tensors(map[string]any{"embeddings": entry("F32", 0, 8, 1, 2)}, floats(1, nan)), wordPiece, "a number is NaN"},
		"infinite":             {tensors(map[string]any{"embeddings": entry("F32", 0, 8, 1, 2)}, floats(inf, 1)), wordPiece, "a number is +Inf"},
		"few rows":             {one("F32", 0, 16, 2, 2), wordPiece, "the tokenizer has the token 4, and there are vectors of 2"},
		"few weights":          {five(1, 2), wordPiece, "weights has the shape"},
		"weight NaN":           {five(1, 2, nan, 4, 5), wordPiece, "weights, token 2"},
		"mapping":              {tensors(map[string]any{"embeddings": entry("F32", 0, 8, 1, 2), "mapping": entry("I32", 8, 28, 5)}, floats(1, 2), []byte{9, 0, 0, 0}, make([]byte, 16)), wordPiece, "the row 9 of 1"},
		"no tokenizer":         {good, "[]", "no tokenizer"},
		"cut tokenizer":        {good, wordPiece[:100], "no tokenizer"},
		"BPE":                  {good, `{"model":{"type":"BPE"}}`, "WordPiece and Unigram are read"},
		"normalizer":           {good, `{"normalizer":{"type":"Magic"},"model":{"type":"BPE"}}`, "normalizer \"Magic\""},
		"pre-tokenizer":        {good, `{"pre_tokenizer":{"type":"Magic"},"model":{"type":"BPE"}}`, "pre-tokenizer \"Magic\""},
		"one side":             {good, `{"normalizer":{"type":"Strip","strip_left":true,"strip_right":false},"model":{"type":"BPE"}}`, "of one side"},
		"behavior":             {good, `{"pre_tokenizer":{"type":"Punctuation","behavior":"Removed"},"model":{"type":"BPE"}}`, "behavior \"Removed\""},
		"pattern":              {good, `{"normalizer":{"type":"Replace","pattern":{"Regex":"(?<=a)b"}},"model":{"type":"BPE"}}`, "its pattern"},
		"no tokens":            {good, `{"model":{"type":"WordPiece","vocab":{}}}`, "no tokens"},
		"token number":         {good, `{"model":{"type":"WordPiece","vocab":{"a":-1}}}`, "has the number -1"},
		"score":                {good, `{"model":{"type":"Unigram","vocab":[["a","b"]]}}`, "no piece with a score"},
		"no pieces":            {good, `{"model":{"type":"Unigram","vocab":[]}}`, "0 tokens"},
	} {
		_, err := model2vec.Open(folder(t, tc.tensors, tc.tokenizer))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	large := folder(t, good, wordPiece)
	if err := os.Truncate(filepath.Join(large, model2vec.TensorsFile), 2<<30+1); err != nil {
		t.Fatal(err)
	}
	if _, err := model2vec.Open(large); err == nil || !strings.Contains(err.Error(), "2147483648 are allowed") {
		t.Errorf("a large file: %v", err)
	}
	if _, err := model2vec.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), model2vec.TokenizerFile) {
		t.Errorf("an empty folder: %v", err)
	}
}

func FuzzTensors(f *testing.F) {
	f.Add(five(1, 2, 3, 4, 5))
	f.Add(five()[:30])
	f.Fuzz(func(t *testing.T, data []byte) { embedAny(t, data, wordPiece, "the seaside") })
}

func FuzzTokenizer(f *testing.F) {
	f.Add(wordPiece, "Séaside, side!")
	f.Add(unigram, "seaside  side 日本")
	f.Fuzz(func(t *testing.T, tokenizer, text string) { embedAny(t, five(), tokenizer, text) })
}

// embedAny opens a model that may be wrong, and embeds a text with it if it can.
func embedAny(t *testing.T, tensors []byte, tokenizer, text string) {
	m, err := model2vec.Open(folder(t, tensors, tokenizer))
	if err != nil {
		return
	}
	all, err := m.Embed(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all[0] {
		if f := float64(f); math.IsNaN(f) || math.IsInf(f, 0) {
			t.Errorf("a number of the vector is %v", f)
		}
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
)

// pack returns a package of npm that has some words, the most frequent first.
func pack(t *testing.T, words ...string) []byte {
	t.Helper()
	var text strings.Builder
	text.WriteString(`{"precision":8,"dimensions":3,"words":["the"],"vectors":{`)
	for rank, word := range words {
		if rank > 0 {
			text.WriteString(",")
		}
		fmt.Fprintf(&text, "%q:[%g,%g,%g,1,%d]", word, math.Sin(float64(rank)), math.Cos(float64(rank)), 0.5, rank)
	}
	text.WriteString(`},"unkVector":[0,0,0,0,-1]}`)
	var file bytes.Buffer
	zipped := gzip.NewWriter(&file)
	archive := tar.NewWriter(zipped)
	for name, content := range map[string]string{vectorsFile: text.String()} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestSameInputGivesTheSameBytes makes a model twice, and looks at its words.
func TestSameInputGivesTheSameBytes(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "package.tgz")
	words := []string{"the", ",", "of", "und", "ship", "x", "Sea", "sea", "cat", "dog"}
	if err := os.WriteFile(in, pack(t, words...), 0o600); err != nil {
		t.Fatal(err)
	}
	var files [2][]byte
	for i := range files {
		out := filepath.Join(dir, fmt.Sprint("model", i))
		if err := run(in, out, filepath.Join(dir, "folder"), 5); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = data
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the same input gave two files")
	}
	if !bytes.Contains(files[0], []byte("the\nof\nship\nsea\ncat\n")) {
		t.Errorf("it has other words: %q", files[0])
	}
	m, err := static.Read(string(files[0]))
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.Embed(t.Context(), []string{"the", "cat"})
	if err != nil {
		t.Fatal(err)
	}
	length := func(v []float32) (sum float32) {
		for _, f := range v {
			sum += f * f
		}
		return sum
	}
	if length(all[0]) >= length(all[1]) {
		t.Errorf("a frequent word counts as much as a rare one: %v, %v", all[0], all[1])
	}
	for _, name := range []string{"model.safetensors", "tokenizer.json", "config.json"} {
		if _, err := os.Stat(filepath.Join(dir, "folder", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestOtherPackagesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"no archive":   {[]byte("{} is no archive"), "gzip"},
		"cut":          {pack(t, "the", "sea")[:100], "unexpected EOF"},
		"no words":     {pack(t), "no words"},
		"only symbols": {pack(t, ",", "."), "no words"},
	} {
		_, err := readPackage(bytes.NewReader(tc.data), 10)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

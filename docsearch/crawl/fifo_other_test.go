//go:build !unix

package crawl

import (
	"os"
	"testing"
)

// makeFIFO makes a file where there are no FIFOs.
func makeFIFO(path string) error { return os.WriteFile(path, nil, 0o644) }

func exhaustDescriptors(t *testing.T) func() {
	t.Skip("descriptors are not limited here")
	return nil
}

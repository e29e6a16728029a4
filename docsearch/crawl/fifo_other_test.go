//go:build !unix

package crawl

import "os"

// makeFIFO makes a file where there are no FIFOs.
func makeFIFO(path string) error { return os.WriteFile(path, nil, 0o644) }

//go:build !all

package e2e

// With the race detector programs start slowly, and these tests start some hundred. The tag
// all, of make test-all, has it.
const (
	kills = 20
	race  = "-race=false"
)

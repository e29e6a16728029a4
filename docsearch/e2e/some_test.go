//go:build !all

package e2e

// The tests of the packages have the race detector. With it, programs start slowly, and
// these tests start some hundred. The tag all has it here too.
const (
	kills = 20
	race  = "-race=false"
)

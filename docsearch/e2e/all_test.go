//go:build all

package e2e

const (
	kills = 100     // how often the daemon is killed under an agent
	race  = "-race" // how docsearch is built
)

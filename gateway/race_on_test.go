//go:build race

package gateway_test

// raceEnabled reduces tests that the race detector makes too slow.
const raceEnabled = true

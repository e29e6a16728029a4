//go:build race

package gateway_test

// raceEnabled is for tests whose size the race detector makes too slow.
const raceEnabled = true

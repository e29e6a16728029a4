//go:build race

package jsonrpc_test

// raceDetector reports whether the tests run under the race detector.
const raceDetector = true

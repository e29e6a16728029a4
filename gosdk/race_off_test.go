//go:build !race

package gosdk_test

// opened is how many sessions the leak check opens.
const opened = 10_000

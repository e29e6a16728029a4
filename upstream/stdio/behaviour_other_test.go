//go:build !unix

package stdio_test

// The tests of Command need a Unix system.
const behaviourEnv = "UPSTREAM_TEST_BEHAVIOUR"

func behave(string) int { return 99 }

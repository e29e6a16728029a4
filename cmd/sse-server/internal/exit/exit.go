// Package exit has the exit codes of the program, and how it says that a configuration cannot be used.
package exit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Exit codes. A second signal ends the program with 128 and the number of the signal, as a shell shows a program
// that died of it.
const (
	OK      = 0
	Failure = 1
	Config  = 2
	Signal  = 128
)

// BySignal returns the exit code of a program that a signal ends at once.
func BySignal(sig os.Signal) int { return Signal + int(sig.(syscall.Signal)) }

// Refuse prints the faults of a configuration, a line each, and returns the exit code for them.
func Refuse(stderr io.Writer, faults error) int {
	for line := range strings.Lines(faults.Error()) { // joined errors have a line each
		fmt.Fprintf(stderr, "sse-server: %s\n", strings.TrimSuffix(line, "\n"))
	}
	return Config
}

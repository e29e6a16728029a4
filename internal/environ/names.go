package environ

import (
	"runtime"
	"strings"
)

// Fold returns the form of a variable's name in which two names of one variable are equal: Windows does not tell Path
// from PATH.
func Fold(name string) string { return foldOn(runtime.GOOS, name) }

func foldOn(system, name string) string {
	if system == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// Split returns the name, in the form of Fold, and the value of a variable. A text without = is no variable:
// no other one has its name.
func Split(variable string) (name, value string) {
	name, value, is := strings.Cut(variable, "=")
	if !is {
		return Fold(variable) + "=", ""
	}
	return Fold(name), value
}

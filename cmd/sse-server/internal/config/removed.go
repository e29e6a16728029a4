package config

import (
	_ "embed"
	"fmt"
	"strings"
)

// removedText has the options that earlier versions had, and what replaces each.
//
//go:embed removed.txt
var removedText string

// replacement returns what replaces an option of an earlier version, "" if there was none.
func replacement(name string) string {
	_, text, _ := strings.Cut("\n"+removedText, "\n"+name+": ")
	text, _, _ = strings.Cut(text, "\n")
	return text
}

// refuseRemoved returns an error if a flag or variable is one of an earlier version.
func refuseRemoved(args []string, lookupEnv func(string) (string, bool)) error {
	for line := range strings.Lines(removedText) {
		name, by, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if text, _ := lookupEnv(envName(name)); text != "" {
			return fmt.Errorf("%s is gone: %s", envName(name), by)
		}
		for _, arg := range args {
			if flag, _, _ := strings.Cut(arg, "="); flag == "--"+name || flag == "--no-"+name {
				return fmt.Errorf("%s is gone: %s", flag, by)
			}
		}
	}
	return nil
}

// envName returns the environment variable of an option.
func envName(name string) string {
	return "SSE_SERVER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Package envfile reads and writes env-files: lines NAME=VALUE, as Docker and systemd have them.
//
//	# a comment
//	export TOKEN='ab$CD'
//	KEY="-----BEGIN
//	x"
package envfile

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	// comment is what may follow a value in quotes.
	comment = regexp.MustCompile(`^[ \t]*(#.*)?$`)
	// tail is a comment after a value without quotes. A # within a word is none.
	tail = regexp.MustCompile(`[ \t]#.*$`)
	// escapes are those between double quotes. Any other backslash stays.
	escapes = strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\"`, `"`, `\\`, `\`, `\$`, `$`)
)

// IsName reports whether a variable can have this name in an env-file.
func IsName(name string) bool { return namePattern.MatchString(name) }

// Parse returns the variables of an env-file, by name. It expands nothing: a $ in a secret is a
// $. A value between quotes may have several lines. Errors name the line, and show nothing of it.
func Parse(data string) (map[string]string, error) {
	all := map[string]string{}
	data = strings.ReplaceAll(strings.TrimPrefix(data, "\ufeff"), "\r\n", "\n")
	for number := 1; data != ""; {
		wrong := func(why string) error { return fmt.Errorf("line %d: %s", number, why) }
		line, rest, _ := strings.Cut(data, "\n")
		first, begun := number, strings.TrimSpace(line)
		data, number = rest, number+1
		if begun == "" || begun[0] == '#' {
			continue
		}
		name, written, isPair := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if after, isExport := strings.CutPrefix(name, "export"); isExport && strings.TrimLeft(after, " \t") != after {
			name = strings.TrimSpace(after)
		}
		number = first
		switch value := strings.TrimLeft(written, " \t"); {
		case !isPair || !IsName(name):
			return nil, wrong("want NAME=VALUE, with # for comments")
		case strings.ContainsRune(line, 0):
			return nil, wrong("no variable may have a NUL byte")
		case value != "" && (value[0] == '\'' || value[0] == '"'):
			text := value[1:]
			if rest != "" {
				text += "\n" + rest
			}
			end := endOfQuote(text, value[0])
			if end < 0 {
				return nil, wrong("the quote of the value does not end")
			}
			after, following, _ := strings.Cut(text[end+1:], "\n")
			if !comment.MatchString(after) {
				return nil, wrong("want nothing after the value but a comment")
			}
			quoted := text[:end]
			data, number = following, number+strings.Count(quoted, "\n")
			if value[0] == '"' {
				quoted = escapes.Replace(quoted)
			}
			all[name] = quoted
		default:
			all[name] = strings.TrimSpace(tail.ReplaceAllString(written, ""))
		}
		number++
	}
	return all, nil
}

// endOfQuote returns where a quote ends, -1 if it does not.
func endOfQuote(text string, quote byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && quote == '"':
			i++
		}
	}
	return -1
}

// Format returns an env-file with these variables.
func Format(variables map[string]string) []byte {
	quote := strings.NewReplacer("\\", `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "$", `\$`)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		b.WriteString(name + `="` + quote.Replace(variables[name]) + "\"\n")
	}
	return []byte(b.String())
}

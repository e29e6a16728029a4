package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/naming"
)

// ofKong is how the parser quotes what it asks for.
var ofKong = regexp.MustCompile(`did you mean "([^"]*)"\?`)

// refuseArgs explains an error of the parser about args: which flag is meant, where an argument goes, or
// which values a flag takes.
func refuseArgs(err error, args []string, flags []*kong.Flag) error {
	err = errors.New(ofKong.ReplaceAllString(err.Error(), "did you mean $1?"))
	text := err.Error()
	if len(args) > 1 && slices.Contains(named, args[0]) && isNoName(args[1]) { // flags after it are of a command
		return unexpected(args[1], args)
	}
	if flag, unknown := strings.CutPrefix(text, "unknown flag "); unknown {
		flag, _, _ = strings.Cut(flag, ",")
		return refuseFlag(err, flag, args)
	}
	word, isUnexpected := strings.CutPrefix(text, "unexpected argument ")
	if isUnexpected && !strings.Contains(word, "did you mean") {
		return fmt.Errorf("%w: %s", err, placeOf(word, args))
	}
	name, _, _ := strings.Cut(text, ": ")
	for _, flag := range flags {
		if name == "--"+flag.Name {
			return refuseValue(err, name, flag)
		}
	}
	return err
}

// named are the commands that take the name of a server or view.
var named = []string{"check", "tools"}

// isNoName reports whether a word in the place of such a name is something else for certain: a program that starts
// servers, an address, a file of options, or a flag with a dash of an editor.
func isNoName(word string) bool {
	return naming.IsLauncher(word) || strings.ContainsAny(word, "/—–") || isFileOfOptions(word)
}

// isFileOfOptions reports whether a word is the name of a file that has options, here or for other programs.
func isFileOfOptions(word string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".toml"}, filepath.Ext(word))
}

// unexpected returns the error about an argument that has no place.
func unexpected(word string, args []string) error {
	return fmt.Errorf("unexpected argument %s: %s", word, placeOf(word, args))
}

// refuseFlag says which flag is meant by one that is not known.
func refuseFlag(err error, flag string, args []string) error {
	if instead := ofSupergateway(args); instead != "" {
		return fmt.Errorf("unknown flag %s: use: %s", flag, instead)
	}
	meant := meantBy(flag)
	option := meant.option
	if meant.withURL != "" && valuesIn(args)["url"] != "" {
		option = meant.withURL
	}
	if strings.HasPrefix(option, "addr ") {
		option = "addr " + addressIn(args)
	}
	switch {
	case option != "":
		return fmt.Errorf("unknown flag %s, did you mean --%s?", flag, option)
	case meant.place != "":
		return fmt.Errorf("unknown flag %s: %s", flag, meant.place)
	}
	return err
}

// placeOf says where an argument goes.
func placeOf(word string, args []string) string {
	i := slices.Index(args, word)
	program := "sse-server "
	if i > 0 && !strings.HasPrefix(args[0], "-") { // check, for example
		program += args[0] + " "
	}
	if i > 0 && takesNoCommand(args[0]) {
		if args[0] == "logins" {
			return "logins takes none"
		}
		return args[0] + " takes one URL or name"
	}
	before := func(n int) string { return args[max(0, i-n)] } // with i > 0
	switch {
	case strings.HasPrefix(word, "—"), strings.HasPrefix(word, "–"):
		return "an editor has replaced its dashes: write --" + strings.TrimLeft(word, "—–-")
	case i > 1 && before(2) == "--env" && assignment.MatchString(word):
		return "each variable has its own --env, as in: --env A=1 --env B=2"
	case i > 1 && before(2) == "--header" && strings.HasSuffix(before(1), ":"):
		return "write a header in quotes, as in: --header 'NAME: VALUE'"
	case isFileOfOptions(word):
		return "a file of options goes after --config, as in: " + program + "--config " + word
	case strings.Contains(word, "://"):
		return "the address of a remote server goes after --url, as in: " + program + "--url " + word
	}
	command := word
	if i >= 0 && !strings.Contains(word, " ") { // else it is a whole command in quotes
		command = asTyped(args[i:])
	}
	return "the command to serve goes after --, as in: " + program + "-- " + command
}

// takesNoCommand reports whether a command of the program serves nothing, so that no command of a server follows it.
func takesNoCommand(name string) bool {
	return slices.Contains([]string{"login", "logout", "logins"}, name)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./\\-]+$`)

// asTyped returns words as a shell takes them.
func asTyped(words []string) string {
	var all []string
	for _, word := range words {
		if !plainWord.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// refuseValue says what a flag takes.
func refuseValue(err error, name string, flag *kong.Flag) error {
	text, meant := err.Error(), meantBy(name)
	switch {
	case flag.Hidden && meant.option != "": // a flag of ours for ourselves
		return fmt.Errorf("unknown flag %s, did you mean --%s?", name, meant.option)
	case flag.Hidden && meant.place != "":
		return fmt.Errorf("unknown flag %s: %s", name, meant.place)
	case strings.Contains(text, `"EOL"`), strings.Contains(text, "missing value"):
		return fmt.Errorf("%s: want a value, as in: %s %s", name, name, flag.PlaceHolder)
	case strings.Contains(text, "value but got"):
		got := gotten(text)
		if takes := numbersOf(flag); takes != "" { // what begins with - is none, in whatever form
			return fmt.Errorf("%s: want %s, but got %s", name, takes, got)
		}
		return fmt.Errorf("%s: want %s, but %s looks like a flag: write %s=%s if it is the value", name,
			flag.PlaceHolder, got, name, strings.Trim(got, `"`))
	}
	return fmt.Errorf("%s: %w", name, plainValue(flag, errors.New(strings.TrimPrefix(text, name+": "))))
}

// numbersOf says which numbers an option takes; empty if it takes something else.
func numbersOf(flag *kong.Flag) string {
	least := "more than 0"
	if flag.Tag.Has("zero") {
		least = "0 or more"
	}
	of := flag.Target.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[Duration]():
		return least + ", such as 15s"
	case reflect.TypeFor[int](), reflect.TypeFor[float64]():
		return least + ", such as 2"
	case reflect.TypeFor[Size]():
		return "bytes from 1KiB to 1GiB, such as 4MiB"
	}
	return ""
}

// gotten returns what an error of kong quotes as the value.
func gotten(text string) string {
	_, got, _ := strings.Cut(text, "but got ")
	got, _, _ = strings.Cut(got, " (")
	return got
}

// plainValue says in plain words which values an option takes, in an error of kong about one.
func plainValue(flag *kong.Flag, err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "int but got"), strings.Contains(text, "float but got"):
		least := "a number over 0"
		if flag.Tag.Has("zero") {
			least = "a number, 0 or more"
		}
		return fmt.Errorf("want %s, such as 2, but got %s", least, gotten(text))
	case strings.HasPrefix(text, "bool value must be"):
		_, got, _ := strings.Cut(text, "but got ")
		return fmt.Errorf("want true or false, but got %s", got)
	}
	return err
}

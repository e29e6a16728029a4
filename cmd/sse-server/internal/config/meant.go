package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// meant says what people mean by names that options of other programs have. The key is the name without
// - and _, in lower case.
var meant = map[string]string{
	"address": "addr 127.0.0.1:8080", "adress": "addr 127.0.0.1:8080", "port": "addr 127.0.0.1:8080",
	"p": "addr 127.0.0.1:8080", "host": "addr 127.0.0.1:8080", "listen": "addr 127.0.0.1:8080", "bind": "addr 127.0.0.1:8080",
	"token": "auth-tokens-file FILE", "tokens": "auth-tokens-file FILE", "bearer": "auth-tokens-file FILE",
	"apikey": "auth-tokens-file FILE", "authtoken": "auth-tokens-file FILE",
	"timeout": "request-timeout 60s, or --start-timeout for the start of the server",
	"debug":   "log-level debug", "verbose": "log-level debug", "v": "log-level debug, or --version",
	"shared": "sessions shared", "stateless": "sessions shared", "heartbeat": "heartbeat-interval 15s",
	"cors": "allowed-origins ORIGIN", "origin": "allowed-origins ORIGIN", "corsorigin": "allowed-origins ORIGIN",
	"cert": "tls-cert FILE", "key": "tls-key FILE", "cwd": "dir DIR", "headers": "header 'NAME: VALUE'",
	"e":     "env NAME=VALUE",
	"quiet": "log-level error", "silent": "log-level error",
	"healthendpoint": "admin-addr HOST:PORT, which has /healthz", "metrics": "admin-addr HOST:PORT, which has /metrics",
}

// meantWithURL are those that mean another option if --url is there: the token is for that server.
var meantWithURL = map[string]string{
	"token": ofRemote, "tokens": ofRemote, "bearer": ofRemote, "apikey": ofRemote, "authtoken": ofRemote, "oauth2bearer": ofRemote,
}

const ofRemote = "header 'Authorization: Bearer TOKEN'"

// elsewhere are such names for which there is no option.
var elsewhere = map[string]string{
	"command":         commandPlace,
	"cmd":             commandPlace,
	"exec":            commandPlace,
	"stdio":           commandPlace,
	"args":            "the command to serve goes after --, with its arguments, as in: sse-server -- npx -y server",
	"oauth":           "it is a key of the file that --config names, such as oauth: {issuer: https://login.example.com}",
	"ssepath":         "HTTP+SSE is at /sse; --prefix puts a path before it",
	"messagepath":     "each client is told where it posts its messages; --prefix puts a path before it",
	"daemon":          "sse-server stays in the foreground; docs/operations.md has a unit of systemd, which starts it in the background",
	"proxy":           "the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY name the proxy to remote servers",
	"start":           "it goes after check, as in: sse-server check --start -- npx -y server",
	"sse":             "both transports are served at one URL; --transports sse serves HTTP+SSE alone, and --url serves a remote server",
	"streamablehttp":  "both transports are served at one URL, and --url serves a remote server",
	"outputtransport": "both transports are served at one URL; --transports sse serves HTTP+SSE alone, and sse-server stdio serves on stdin and stdout",
}

const commandPlace = "the command to serve goes after --, as in: sse-server -- npx -y server"

// words are first arguments of other programs that mean one of ours.
var words = map[string]string{"version": "--version", "help": "--help", "start": "serve", "run": "serve"}

// plainName returns a name as the tables have it.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// suggestion returns the option that a key of the file seems to mean, in parentheses after a space; empty
// if it is like none.
func (s *Server) suggestion(key string) string {
	if option, ok := meant[plainName(key)]; ok {
		name, _, _ := strings.Cut(option, " ")
		return " (did you mean " + name + "?)"
	}
	var names []string
	if s.Name == "" {
		names = []string{serversKey, clients.MostKey, clients.ZedKey}
	}
	for _, flag := range s.flags {
		if !flag.Tag.Has("only") && flag.Name != "config" {
			names = append(names, flag.Name)
		}
	}
	return suggestionOf([]string{key}, names)
}

// suggestionOf returns which of names one of keys seems to mean, as suggestion does.
func suggestionOf(keys, names []string) string {
	for _, key := range keys {
		if name := nearest(key, names); name != "" {
			return " (did you mean " + name + "?)"
		}
	}
	return ""
}

// DidYouMean returns a question for the middle of a sentence: which of names somebody seems to mean who has
// written text; empty if that is like none.
func DidYouMean(text string, names []string) string {
	if name := nearest(text, names); name != "" {
		return fmt.Sprintf(", did you mean %q?", name)
	}
	return ""
}

// nearest returns the name that text seems to mean: one of which it is the beginning, or in which about a third
// of its letters are wrong at most; empty if it is like none.
func nearest(text string, names []string) (name string) {
	text = plainName(text)
	least := max(1, (len(text)+1)/3) + 1
	for _, one := range names {
		far := levenshtein.ComputeDistance(text, plainName(one))
		if len(text) > 2 && strings.HasPrefix(plainName(one), text) {
			far = min(far, 1)
		}
		if far < least {
			name, least = one, far
		}
	}
	return name
}

// ofKong is how the parser quotes what it asks for.
var ofKong = regexp.MustCompile(`did you mean "([^"]*)"\?`)

// refuseArgs explains an error of the parser about args: which flag is meant, where an argument goes, or
// which values a flag takes.
func refuseArgs(err error, args []string, flags []*kong.Flag) error {
	err = errors.New(ofKong.ReplaceAllString(err.Error(), "did you mean $1?"))
	text := err.Error()
	if flag, unknown := strings.CutPrefix(text, "unknown flag "); unknown {
		flag, _, _ = strings.Cut(flag, ",")
		return refuseFlag(err, flag, args)
	}
	if word, unexpected := strings.CutPrefix(text, "unexpected argument "); unexpected && !strings.Contains(word, "did you mean") {
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

// refuseFlag says which flag is meant by one that is not known.
func refuseFlag(err error, flag string, args []string) error {
	if instead := ofSupergateway(args); instead != "" {
		return fmt.Errorf("unknown flag %s: use: %s", flag, instead)
	}
	name := plainName(flag)
	option, ok := meantWithURL[name]
	if !ok || valuesIn(args)["url"] == "" {
		option, ok = meant[name]
	}
	if ok {
		if strings.HasPrefix(option, "addr ") {
			option = "addr " + addressIn(args)
		}
		return fmt.Errorf("unknown flag %s, did you mean --%s?", flag, option)
	}
	if place, ok := elsewhere[name]; ok {
		return fmt.Errorf("unknown flag %s: %s", flag, place)
	}
	return err
}

// flagsOfSupergateway are flags that may follow the command of supergateway.
var flagsOfSupergateway = []string{"port", "baseurl", "outputtransport", "ssepath", "messagepath", "streamablehttppath", "loglevel", "cors",
	"healthendpoint", "header", "oauth2bearer", "stateful", "sessiontimeout", "protocolversion"}

// ofSupergateway returns the command line that means the same as one of supergateway; empty if args are
// none. Its options have the command or the address of the server as their value.
func ofSupergateway(args []string) string {
	values := valuesIn(args)
	command, url := values["stdio"], cmp.Or(values["sse"], values["streamablehttp"])
	switch {
	case command != "" && !strings.HasPrefix(command, "-"):
		addr := ""
		if port := values["port"]; port != "" {
			addr = "--addr 127.0.0.1:" + port + " "
		}
		return "sse-server " + addr + "-- " + command + restOfCommand(args)
	case strings.Contains(url, "://"):
		return "sse-server stdio --url " + url + ", or without stdio to serve it over HTTP"
	}
	return ""
}

// restOfCommand returns the words after the value of --stdio that belong to the command, after a space: with
// supergateway all of it is one word, in quotes that people forget.
func restOfCommand(args []string) string {
	i := slices.IndexFunc(args, func(arg string) bool { return arg == "--stdio" || strings.HasPrefix(arg, "--stdio=") })
	if i < 0 {
		return ""
	}
	if args[i] == "--stdio" {
		i++
	}
	rest := args[i+1:]
	if end := slices.IndexFunc(rest, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return strings.HasPrefix(name, "--") && slices.Contains(flagsOfSupergateway, plainName(name))
	}); end >= 0 {
		rest = rest[:end]
	}
	if len(rest) == 0 {
		return ""
	}
	return " " + asTyped(rest)
}

// valuesIn returns what seem to be the values of flags, by their plain names.
func valuesIn(args []string) map[string]string {
	values := map[string]string{}
	for i, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		if !has && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(name, "-") {
			values[plainName(name)] = value
		}
	}
	return values
}

// addressIn returns the address that flags of other programs mean, such as --port 8000.
func addressIn(args []string) string {
	host, port := "127.0.0.1", "8080"
	values := valuesIn(args)
	for _, name := range []string{"address", "adress", "listen", "bind", "host", "port", "p"} {
		value := values[name]
		of, at, err := net.SplitHostPort(value)
		switch {
		case err == nil && isPort(at):
			port = at
			if isHost(of) {
				host = of
			}
		case isPort(value):
			port = value
		case isHost(value):
			host = value
		}
	}
	return net.JoinHostPort(host, port)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || text == "localhost"
}

// placeOf says where an argument goes.
func placeOf(word string, args []string) string {
	i := slices.Index(args, word)
	program := "sse-server "
	if i > 0 && !strings.HasPrefix(args[0], "-") { // check, for example
		program += args[0] + " "
	}
	before := func(n int) string { return args[max(0, i-n)] } // with i > 0
	switch {
	case strings.HasPrefix(word, "—"), strings.HasPrefix(word, "–"):
		return "an editor has replaced its dashes: write --" + strings.TrimLeft(word, "—–-")
	case i > 1 && before(2) == "--env" && assignment.MatchString(word):
		return "each variable has its own --env, as in: --env A=1 --env B=2"
	case i > 1 && before(2) == "--header" && strings.HasSuffix(before(1), ":"):
		return "write a header in quotes, as in: --header 'NAME: VALUE'"
	case strings.HasSuffix(word, ".yaml"), strings.HasSuffix(word, ".yml"), strings.HasSuffix(word, ".json"):
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
	text := err.Error()
	switch {
	case flag.Hidden && meant[plainName(name)] != "": // a flag of ours for ourselves
		return fmt.Errorf("unknown flag %s, did you mean --%s?", name, meant[plainName(name)])
	case flag.Hidden && elsewhere[plainName(name)] != "":
		return fmt.Errorf("unknown flag %s: %s", name, elsewhere[plainName(name)])
	case strings.Contains(text, `"EOL"`), strings.Contains(text, "missing value"):
		return fmt.Errorf("%s: want a value, as in: %s %s", name, name, flag.PlaceHolder)
	case strings.Contains(text, "value but got"):
		got := gotten(text)
		if takes := numbersOf(flag); takes != "" { // what begins with - is none, in whatever form
			return fmt.Errorf("%s: want %s, but got %s", name, takes, got)
		}
		return fmt.Errorf("%s: want %s, but %s looks like a flag: write %s=%s if it is the value", name, flag.PlaceHolder, got, name, strings.Trim(got, `"`))
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

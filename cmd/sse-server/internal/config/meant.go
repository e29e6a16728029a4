package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"
)

// meant says what people mean by names that options of other programs have. The key is the name without
// - and _, in lower case.
var meant = map[string]string{
	"address": "addr 127.0.0.1:8080", "adress": "addr 127.0.0.1:8080", "port": "addr 127.0.0.1:8080",
	"host": "addr 127.0.0.1:8080", "listen": "addr 127.0.0.1:8080", "bind": "addr 127.0.0.1:8080",
	"token": "auth-tokens-file FILE", "tokens": "auth-tokens-file FILE", "bearer": "auth-tokens-file FILE",
	"apikey": "auth-tokens-file FILE", "authtoken": "auth-tokens-file FILE",
	"timeout": "request-timeout 60s, or start-timeout for the start of the server",
	"debug":   "log-level debug", "verbose": "log-level debug", "v": "log-level debug, or --version",
	"shared": "sessions shared", "stateless": "sessions shared", "heartbeat": "heartbeat-interval 15s",
	"cors": "allowed-origins ORIGIN", "origin": "allowed-origins ORIGIN", "corsorigin": "allowed-origins ORIGIN",
	"cert": "tls-cert FILE", "key": "tls-key FILE", "cwd": "dir DIR", "headers": "header 'NAME: VALUE'",
	"healthendpoint": "admin-addr HOST:PORT, which has /healthz", "metrics": "admin-addr HOST:PORT, which has /metrics",
}

// elsewhere are such names for which there is no option.
var elsewhere = map[string]string{
	"stdio":   "the command to serve goes after --, as in: sse-server -- npx -y server",
	"command": "the command to serve goes after --, as in: sse-server -- npx -y server",
	"args":    "the command to serve goes after --, with its arguments, as in: sse-server -- npx -y server",
	"oauth":   "it is a key of the file that --config names",
	"sse":     "both transports are served at one URL; --transports sse serves HTTP+SSE alone",
}

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
	best, least := "", max(1, len(key)/3)+1
	for _, flag := range s.flags {
		if flag.Tag.Has("only") || flag.Name == "config" {
			continue
		}
		if d := levenshtein.ComputeDistance(plainName(key), plainName(flag.Name)); d < least {
			best, least = flag.Name, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// withPlace adds to an error about an argument where such an argument goes, or which flag is meant.
func withPlace(err error) error {
	text := err.Error()
	if flag, unknown := strings.CutPrefix(text, "unknown flag "); unknown {
		flag, _, _ = strings.Cut(flag, ",")
		name := plainName(flag)
		if option, ok := meant[name]; ok {
			return fmt.Errorf("unknown flag %s, did you mean --%s?", flag, option)
		}
		if place, ok := elsewhere[name]; ok {
			return fmt.Errorf("unknown flag %s: %s", flag, place)
		}
	}
	word, unexpected := strings.CutPrefix(text, "unexpected argument ")
	place := "the command to serve goes after --, as in: sse-server -- "
	switch {
	case !unexpected || strings.Contains(word, "did you mean"):
		return withValue(err)
	case strings.HasSuffix(word, ".yaml"), strings.HasSuffix(word, ".yml"):
		place = "a file of options goes after --config, as in: sse-server --config "
	case strings.Contains(word, "://"):
		place = "the address of a remote server goes after --url, as in: sse-server --url "
	}
	return fmt.Errorf("%w: %s%s", err, place, word)
}

// gotten returns what an error of kong quotes as the value.
func gotten(text string) string {
	_, got, _ := strings.Cut(text, "but got ")
	got, _, _ = strings.Cut(got, " (")
	return got
}

// withValue says which values a flag takes, in an error about one that it does not take.
func withValue(err error) error {
	text := err.Error()
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	switch name, _, found := strings.Cut(text, ": expected "); {
	case !found, strings.Contains(text, `"EOL"`): // it has no value
		return err
	case strings.Contains(text, "int but got"), strings.Contains(text, "float but got"):
		return fmt.Errorf("%s: want a number, but got %s", name, gotten(text))
	case strings.Contains(text, "value but got"):
		return fmt.Errorf("%s: %s looks like a flag: write %s=%s if it is the value", name, gotten(text), name, strings.Trim(gotten(text), `"`))
	}
	return err
}

package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// meaning is what people mean who type a flag of another program, or a key of the file.
type meaning struct {
	typed   string // the names, as plainName has them, with blanks between them
	option  string // the option that they mean, with its value; empty: there is none, and place says what to do
	withURL string // the option that they mean if --url is there, as a token is for that server; empty: the same
	place   string
	isKey   bool // place is also about a key of the file
}

// addressTyped are the names of flags whose value is an address, its host or its port.
const addressTyped = "address adress listen bind host port p"

// meanings are what each of those names means.
var meanings = []meaning{
	{typed: addressTyped, option: "addr 127.0.0.1:8080"},
	{typed: "token tokens bearer apikey authtoken", option: "auth-tokens-file FILE", withURL: ofRemote},
	{typed: "oauth2bearer", withURL: ofRemote},
	{typed: "timeout", option: "request-timeout 60s, or --start-timeout for the start of the server"},
	{typed: "debug verbose", option: "log-level debug"},
	{typed: "v", option: "log-level debug, or --version"},
	{typed: "quiet silent", option: "log-level error"},
	{typed: "shared stateless", option: "sessions shared"},
	{typed: "heartbeat", option: "heartbeat-interval 15s"},
	{typed: "cors origin corsorigin alloworigin alloworigins allowedorigin", option: "allowed-origins ORIGIN"},
	{typed: "cert", option: "tls-cert FILE"},
	{typed: "key", option: "tls-key FILE"},
	{typed: "cwd", option: "dir DIR"},
	{typed: "headers", option: "header 'NAME: VALUE'"},
	{typed: "e", option: "env NAME=VALUE"},
	{typed: "healthendpoint", option: "admin-addr HOST:PORT, which has /healthz"},
	{typed: "path basepath", option: "prefix PATH, before /mcp"},
	{typed: "maxsessions maxclients", option: "max-connections N"},
	{typed: "reload hotreload", option: "watch"},
	{typed: "metrics", option: "admin-addr HOST:PORT, which has /metrics"},

	{typed: "logfile", place: "the log goes to stderr: put 2> FILE after the command, or let systemd keep it"},
	{typed: "noauth disableauth", place: "there is no authentication without --auth-tokens-file and oauth: leave it " +
		"out; an address that other machines reach also needs --insecure then"},
	{typed: "ui web dashboard inspector", place: "a page is at the URL of each server for browsers: leave it out; " +
		"--no-page switches it off"},
	{typed: "namedserver namedserverconfig servers", place: "several servers are listed in a file, below servers, " +
		"as in: sse-server --config servers.yaml; docs/getting-started.md shows one"},
	{typed: "passenvironment", place: "a command gets the environment without it: leave it out; --env-allow names " +
		"variables to let it have only these"},
	{typed: "baseurl publicurl", place: "a client is told paths alone, which work behind any address; public-url of " +
		"the file that --config names is for logins and for what people paste"},
	{typed: "disabled", isKey: true, place: "put # before each line of the server; entries of mcpServers may have it"},

	{typed: "command cmd exec stdio", place: "the command to serve goes after --, as in: sse-server -- npx -y server"},
	{typed: "args",
		place: "the command to serve goes after --, with its arguments, as in: sse-server -- npx -y server"},
	{typed: "oauth",
		place: "it is a key of the file that --config names, such as oauth: {issuer: https://login.example.com}"},
	{typed: "ssepath", place: "HTTP+SSE is at /sse; --prefix puts a path before it"},
	{typed: "messagepath", place: "each client is told where it posts its messages; --prefix puts a path before it"},
	{typed: "daemon", place: "sse-server stays in the foreground; docs/operations.md has a unit of systemd, " +
		"which starts it in the background"},
	{typed: "proxy",
		place: "the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY name the proxy to remote servers"},
	{typed: "start", place: "it goes after check, as in: sse-server check --start -- npx -y server"},
	{typed: "sse", place: "both transports are served at one URL; --transports sse serves HTTP+SSE alone, " +
		"and --url serves a remote server"},
	{typed: "streamablehttp", place: "both transports are served at one URL, and --url serves a remote server"},
	{typed: "outputtransport", place: "both transports are served at one URL; " +
		"--transports sse serves HTTP+SSE alone, and sse-server stdio serves on stdin and stdout"},
}

const ofRemote = "header 'Authorization: Bearer TOKEN'"

// words are first arguments of other programs that mean one of ours.
var words = map[string]string{"help": "--help", "start": "serve", "run": "serve",
	"list": "tools", "ls": "tools"}

// meantBy returns what a name means; the zero meaning if that is not known.
func meantBy(name string) meaning {
	name = plainName(name)
	for _, one := range meanings {
		if slices.Contains(strings.Fields(one.typed), name) {
			return one
		}
	}
	return meaning{}
}

// plainName returns a name without - and _, in lower case.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// suggestion returns the option that a key of the file seems to mean, in parentheses after a space; empty
// if it is like none.
func (s *Server) suggestion(key string) string {
	if name, _, _ := strings.Cut(meantBy(key).option, " "); name != "" {
		return " (did you mean " + name + "?)"
	}
	var names []string
	if s.Name == "" {
		names = []string{serversKey, clients.MostKey, clients.ZedKey, viewsKey}
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
	for _, name := range strings.Fields(addressTyped) {
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

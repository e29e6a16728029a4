// Package browser opens the person's browser. It starts a program with the address as its one argument, and no shell.
package browser

import (
	"errors"
	"net/url"
	"os/exec"
	"runtime"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/hosts"
)

// IsThere reports whether a browser can be seen by whoever started the program: there is a display, and the person is
// not on another machine. BROWSER names a program all the same.
func IsThere(lookupEnv func(string) (string, bool)) bool {
	get := func(name string) string { value, _ := lookupEnv(name); return value }
	switch {
	case get("BROWSER") != "":
		return true
	case get("SSH_CONNECTION") != "", get("SSH_TTY") != "":
		return false
	case runtime.GOOS == "windows", runtime.GOOS == "darwin":
		return true
	}
	return get("DISPLAY") != "" || get("WAYLAND_DISPLAY") != ""
}

// errAddress reports an address that no browser is started with.
var errAddress = errors.New("only an address with https is opened, or one with http on this machine")

// argument returns an address as it is given to the browser: parsed and written anew.
func argument(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil || !hosts.IsSecure(at) || strings.ContainsFunc(at.Host, isOdd) || at.Opaque != "" || at.User != nil {
		return "", errAddress
	}
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil { // else a part of it would be lost
		return "", errAddress
	}
	clean := url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path, RawPath: at.RawPath, RawQuery: query.Encode()}
	return clean.String(), nil
}

// isOdd reports whether a character is in no name of a host, nor in an address.
func isOdd(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-.:[]", r))
}

// programs are those that open an address, by system. BROWSER wins.
var programs = map[string][]string{
	"darwin": {"/usr/bin/open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// Open opens an address in the browser. It does not wait for that.
func Open(lookupEnv func(string) (string, bool), address string) error {
	at, err := argument(address)
	if err != nil {
		return err
	}
	command, known := programs[runtime.GOOS]
	if !known {
		command = []string{"xdg-open"}
	}
	if named, _ := lookupEnv("BROWSER"); named != "" && runtime.GOOS != "windows" {
		first, _, _ := strings.Cut(named, ":") // a list, as some programs have it
		command = []string{first}
	}
	cmd := exec.Command(command[0], append(command[1:len(command):len(command)], at)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // ends with the program, which is the browser's own start
	return nil
}

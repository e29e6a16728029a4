package login

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
)

// Name returns what a person types for the URL of a server in a command. A query tells servers apart and may be a key,
// so that nobody reads it: the hash by which the logins are kept is in its place, as the fragment.
func Name(server string) string {
	at, err := Canonical(server)
	if err != nil || at.RawQuery == "" {
		return server
	}
	key := hash(at.String())
	at.RawQuery, at.Fragment = "", key
	return at.String()
}

// ErrUnknownName reports a name that Name has not given on this machine to this user.
var ErrUnknownName = errors.New("no server of this name waits for a login of this user: give its whole URL")

// URLOf returns the URL of the server that Name has named so: one that a program has asked for a login at, or that
// somebody is logged in at. A URL that is no such name is returned as it is.
func URLOf(stateDir, name string) (string, error) {
	at, err := url.Parse(name)
	if err != nil || len(at.Fragment) != 2*hashBytes {
		return name, nil
	}
	store := NewStore(stateDir)
	if store.dir == "" {
		return "", errNoPlace
	}
	if kept, err := os.ReadFile(store.nameFile(at.Fragment)); err == nil && Name(string(kept)) == name {
		return string(kept), nil
	}
	all, _ := store.All() // others are not meant
	for _, l := range all {
		if Name(l.Server) == name {
			return l.Server, nil
		}
	}
	return "", ErrUnknownName
}

// nameFile returns the file that has the URL of a server with this hash.
func (s Store) nameFile(hash string) string {
	return filepath.Join(s.dir, filepath.Base(hash)+".server")
}

// keepName keeps the URL of a server whose name does not have it, until somebody is logged in there: the file of the
// login has it.
func (s Store) keepName(server string) {
	if s.of != nil { // no command is about it
		return
	}
	at := s.nameFile(hash(server))
	if _, err := os.Stat(at); err == nil || Name(server) == server || s.open() != nil {
		return
	}
	_ = atomicfile.Write(at, []byte(server)) // without it the person gives the whole URL
}

// KeepName has login find the server by the name in Command.
func (c Credentials) KeepName() { s := c.source(); s.store.keepName(s.server) }

// dropName forgets it.
func (s Store) dropName(server string) {
	if s.dir != "" && s.of == nil {
		_ = os.Remove(s.nameFile(hash(server)))
	}
}

package login

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// Login is what is kept of a login at a server, by an issuer.
type Login struct {
	Server string `json:"server"` // Canonical
	Issuer string `json:"issuer"`
	// ServerAt is the address of the server if that is inside: the issuer may be there too.
	ServerAt  netip.Addr `json:"serverAt,omitzero"`
	TokenURL  string     `json:"tokenUrl"`
	RevokeURL string     `json:"revokeUrl,omitempty"`
	Client    Client     `json:"client"`
	Resource  string     `json:"resource,omitempty"` // that each request for a token has; empty: none
	Scopes    []string   `json:"scopes,omitempty"`
	// Asked, Port and EndpointHosts are those of Options. The next login has them too.
	Asked         []string `json:"askedScopes,omitempty"`
	Port          int      `json:"port,omitempty"`
	EndpointHosts []string `json:"endpointHosts,omitempty"`

	Access    string    `json:"accessToken,omitempty"`
	Refresh   string    `json:"refreshToken,omitempty"`
	Expiry    time.Time `json:"expiry,omitzero"` // of the access token; zero: unknown
	At        time.Time `json:"loggedIn"`
	Refreshed time.Time `json:"refreshed"`
	Ended     time.Time `json:"ended,omitzero"` // when the issuer ended it; zero: it has not
}

// Public returns the URL of the server for people.
func (l *Login) Public() string { return publicURL(l.Server) }

// Store is the logins of a user, a file each, or those of a principal at one server. The zero Store has no place, and
// no logins.
type Store struct {
	dir string
	of  *owner // nil: they are of the user of this program
}

// NewStore returns the store in the directory for what outlives the process; empty: there is none.
func NewStore(stateDir string) Store {
	if stateDir == "" {
		return Store{}
	}
	return Store{dir: filepath.Join(stateDir, "logins")}
}

// errNoPlace reports that there is no directory for logins.
var errNoPlace = errors.New("neither STATE_DIRECTORY nor HOME is set: there is no place for logins")

const (
	suffix    = ".json"
	lockPoll  = 20 * time.Millisecond
	maxFile   = 256 << 10
	hashBytes = 10
)

// hash names a URL in the name of a file: logins are found by it, and nobody reads from a listing where they are.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:hashBytes])
}

// key returns the beginning of the names of the files about a server.
func (s Store) key(server string) string {
	if s.of == nil {
		return hash(server)
	}
	return hash(strings.Join([]string{s.of.Page, s.of.Principal, s.of.Authority, server}, "\n"))
}

// path returns the file of a login.
func (s Store) path(server, issuer string) string {
	return filepath.Join(s.dir, s.key(server)+"."+hash(strings.TrimSuffix(issuer, "/"))+suffix)
}

// filesOf returns the files of the logins at a server; empty: of all.
func (s Store) filesOf(server string) (paths []string, err error) {
	if s.dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, atomicfile.Unfinished) &&
			(server == "" || strings.HasPrefix(name, s.key(server)+".")) {
			paths = append(paths, filepath.Join(s.dir, name))
		}
	}
	return paths, err
}

// Newest returns the newest login at a server, and its file; nil if nobody has logged in there.
func (s Store) Newest(server string) (newest *Login, path string, err error) {
	paths, err := s.filesOf(server)
	if err != nil {
		return nil, "", err
	}
	var problems error
	for _, at := range paths {
		l, err := s.read(at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errSealed):
		case err != nil:
			problems = errors.Join(problems, err)
		case l.Server != server:
		case newest == nil || l.At.After(newest.At):
			newest, path = l, at
		}
	}
	if newest == nil {
		return nil, "", problems
	}
	return newest, path, nil
}

// All returns all logins, those at one server beside each other, and what is wrong with the files of others.
func (s Store) All() (all []*Login, err error) {
	paths, err := s.filesOf("")
	for _, at := range paths {
		l, problem := s.read(at)
		if problem == nil {
			all = append(all, l)
		} else if !errors.Is(problem, fs.ErrNotExist) {
			err = errors.Join(err, problem)
		}
	}
	slices.SortFunc(all, func(a, b *Login) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), b.At.Compare(a.At))
	})
	return all, err
}

// errOpen reports a file that other users can read.
var errOpen = errors.New("can be read by other users, who may have its tokens: log out, and in again; or, if nobody " +
	"else was here, chmod 600 it")

// Unusable is a file of a login that is not used, and why.
type Unusable struct {
	Path string
	Why  error
	// Login is what the file has, if no other user has written it; else nil.
	Login *Login
}

// Unusable returns the files of logins at a server that are not used.
func (s Store) Unusable(server string) (all []Unusable, err error) {
	paths, err := s.filesOf(server)
	for _, at := range paths {
		_, why := s.read(at)
		if why == nil || errors.Is(why, fs.ErrNotExist) {
			continue
		}
		one := Unusable{Path: at, Why: why}
		if info, err := os.Lstat(at); errors.Is(why, errOpen) && err == nil && info.Mode().Perm()&0o022 == 0 {
			if l, err := s.readAny(at, info); err == nil && l.Server == server {
				one.Login = l
			}
		}
		all = append(all, one)
	}
	return all, err
}

// read reads a login, which nobody but this user may be able to read.
func (s Store) read(path string) (*Login, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s %w", path, errOpen)
	}
	return s.readAny(path, info)
}

// readAny reads a login, whoever can read it.
func (s Store) readAny(path string, info fs.FileInfo) (*Login, error) {
	switch {
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is no login: delete it", path)
	case !private.IsTrusted(info):
		return nil, fmt.Errorf("%s belongs to another user: delete it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if s.of != nil {
		if data, err = s.of.open(data); err != nil {
			return nil, fmt.Errorf("%s %w", path, err)
		}
	}
	var l Login
	if err := json.Unmarshal(data, &l); err != nil || l.Server == "" || l.Client.ID == "" {
		return nil, fmt.Errorf("%s is no login: delete it", path) // the error may quote a token
	}
	if at := s.path(l.Server, l.Issuer); filepath.Base(at) != filepath.Base(path) {
		return nil, fmt.Errorf("%s has the login of another name: delete it", path)
	}
	return &l, nil
}

// Save writes a login.
func (s Store) Save(l *Login) error {
	if err := s.open(); err != nil {
		return err
	}
	return s.write(l)
}

// open makes the folder, and returns an error if others can open it.
func (s Store) open() error {
	if s.dir == "" {
		return errNoPlace
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return private.CheckClosed(s.dir)
}

// Forget deletes a login, and what its server said. It is no error if there is none. Its lock stays: others may wait
// for that.
func (s Store) Forget(l *Login) error {
	err := os.Remove(s.path(l.Server, l.Issuer))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	s.dropName(l.Server)
	return errors.Join(err, s.forgetMemory(l))
}

func lockOf(path string) string { return strings.TrimSuffix(path, suffix) + ".lock" }

// errLocked reports that another process has had the lock of a login for too long.
var errLocked = errors.New("the login is being refreshed by another process")

// lock locks a login for all processes, until unlock is called, or ctx ends first.
func (s Store) lock(ctx context.Context, path string) (unlock func(), err error) {
	file := flock.New(lockOf(path), flock.SetPermissions(0o600))
	locked, err := file.TryLockContext(ctx, lockPoll)
	if err != nil || !locked {
		return nil, fmt.Errorf("%w: %w", errLocked, cmp.Or(err, ctx.Err()))
	}
	return func() { _ = file.Close() }, nil
}

// used notes that a login was used.
func (s Store) used(path string, now time.Time) {
	lock := lockOf(path)
	if os.Chtimes(lock, now, now) != nil {
		if file, err := os.OpenFile(lock, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_ = file.Close()
		}
	}
}

// LastUse returns when a login was last used, as far as it is known to a minute; zero: never.
func (s Store) LastUse(l *Login) time.Time {
	return lastUse(s.path(l.Server, l.Issuer), l.At)
}

// lastUse returns when the login of a file was last used that was made at a time. An older use is of the login before.
func lastUse(path string, made time.Time) time.Time {
	info, err := os.Stat(lockOf(path))
	if err != nil || info.ModTime().Before(made) {
		return time.Time{}
	}
	return info.ModTime()
}

// unused notes that a login that was made at a time was not used yet.
func (s Store) unused(path string, made time.Time) {
	before := made.Add(-time.Second)
	_ = os.Chtimes(lockOf(path), before, before) // nothing but the text of a list depends on it
}

// memorySuffix ends the name of the folder with what a server said to a login. It is beside the file of the login, and
// is deleted with that.
const memorySuffix = ".said"

// mark names a login. Another login at the same server, by the same issuer, has another mark.
func (l *Login) mark() string {
	return hash(strings.Join([]string{l.Server, l.Issuer, l.At.UTC().Format(time.RFC3339Nano)}, "\n"))
}

// memoryOf returns what a server said to a login. place is what else the server's answers depend on.
func (s Store) memoryOf(l *Login, place string, log *slog.Logger) *remember.Server {
	store := remember.Open(s.memoryDir(l), log)
	return store.Server(remember.Identity{Server: "login " + l.mark(), Place: place})
}

func (s Store) memoryDir(l *Login) string { return memoryBeside(s.path(l.Server, l.Issuer)) }

// memoryBeside returns the folder beside the file of a login.
func memoryBeside(path string) string { return strings.TrimSuffix(path, suffix) + memorySuffix }

// forgetMemory deletes what a server said to a login, and to those before it by the same issuer.
func (s Store) forgetMemory(l *Login) error { return os.RemoveAll(s.memoryDir(l)) }

package login

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
)

// Own says whose login Credentials mean, where each principal of a gateway has one of its own. The zero Own means none:
// all share one. It must not be logged.
type Own struct {
	// Page is the address at which a principal logs in: PUBLIC-URL/login/NAME. Principals of two gateways that have the
	// same name are not the same, and this address tells them apart.
	Page string
	// Key seals the files: see SealingKey. Empty: nothing is kept, and nobody can log in.
	Key string
	// Principal is whose login it is. Empty: nobody's, as for a probe.
	Principal string
}

// owner is whose logins at a server a Store has.
type owner struct {
	Own
	server string // Canonical
}

// folderOfPrincipals is the folder below that of the logins with those of principals.
const folderOfPrincipals = "of-principals"

// SealingKey derives the key that seals the logins of principals from the key of ids; empty without one.
func SealingKey(idKey []byte) string {
	if len(idKey) == 0 {
		return ""
	}
	key, err := hkdf.Key(sha256.New, idKey, nil, "mcp-sse: logins of principals", 32)
	if err != nil { // there are as many bytes
		panic(err)
	}
	return string(key)
}

// store returns the store of a principal's logins at a server. It has no place if there is no principal, or no key.
func (o Own) store(stateDir, server string) Store {
	if stateDir == "" || o.Key == "" || o.Principal == "" || o.Page == "" {
		return Store{}
	}
	return Store{dir: principalsDir(stateDir), of: &owner{o, server}}
}

func principalsDir(stateDir string) string {
	return filepath.Join(NewStore(stateDir).dir, folderOfPrincipals)
}

// envelope is the file of a principal's login. All but Sealed is for people, and for the end of a principal: a login is
// used only if it was sealed for the owner that asks.
type envelope struct {
	Server    string    `json:"server"` // Name
	Issuer    string    `json:"issuer"`
	Page      string    `json:"page"`
	Principal string    `json:"principal"`
	At        time.Time `json:"loggedIn"`
	Sealed    []byte    `json:"sealed"` // a Login
}

// errSealed reports a file that was sealed for another principal, server, issuer or gateway, or with another key of
// ids, or that was changed. Such a login is none: its principal logs in again.
var errSealed = errors.New("is not sealed with the key of ids of now for this principal")

func (o *owner) aead() cipher.AEAD {
	block, err := aes.NewCipher([]byte(o.Key))
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return aead
		}
	}
	panic(err) // SealingKey has the right length
}

// boundTo returns the additional data of the seal: a file is good for these alone.
func (o *owner) boundTo(issuer string) []byte {
	data, _ := json.Marshal([]string{"login 1", o.server, issuer, o.Page, o.Principal}) // never fails
	return data
}

// seal returns the file of a login.
func (o *owner) seal(l *Login) ([]byte, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(envelope{Server: Name(l.Server), Issuer: l.Issuer, Page: o.Page, Principal: o.Principal,
		At: l.At, Sealed: o.aead().Seal(nil, nil, data, o.boundTo(l.Issuer))}, "", "  ")
}

// open returns what the file of a login has sealed.
func (o *owner) open(data []byte) ([]byte, error) {
	var e envelope
	if json.Unmarshal(data, &e) != nil {
		return nil, errSealed
	}
	opened, err := o.aead().Open(nil, nil, e.Sealed, o.boundTo(e.Issuer))
	if err != nil {
		return nil, errSealed
	}
	return opened, nil
}

// OfPrincipal is the login of a principal, as its file says without being opened.
type OfPrincipal struct {
	Server    string // Name of it
	Issuer    string
	Page      string
	Principal string
	At        time.Time
	LastUse   time.Time // zero: never
	path      string
}

// OfPrincipals returns the logins of principals, those of one server beside each other. It leaves out files that are
// none.
func OfPrincipals(stateDir string) (all []OfPrincipal, err error) {
	if stateDir == "" {
		return nil, nil
	}
	store := Store{dir: principalsDir(stateDir)}
	paths, err := store.filesOf("")
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
			continue
		}
		data, err := os.ReadFile(path)
		var e envelope
		if err != nil || json.Unmarshal(data, &e) != nil || e.Principal == "" {
			continue
		}
		one := OfPrincipal{Server: e.Server, Issuer: e.Issuer, Page: e.Page, Principal: e.Principal, At: e.At,
			path: path}
		if info, err := os.Stat(lockOf(path)); err == nil {
			one.LastUse = info.ModTime()
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b OfPrincipal) int {
		return strings.Compare(a.Server+"\n"+a.Page+"\n"+a.Principal, b.Server+"\n"+b.Page+"\n"+b.Principal)
	})
	return all, err
}

// Forget deletes the login of a principal, and what the server said to it. The issuer is not told.
func (o OfPrincipal) Forget(ctx context.Context) error {
	store := Store{dir: filepath.Dir(o.path)}
	unlock, err := store.lock(ctx, o.path) // a refresh under way would write the file anew
	if err == nil {
		defer unlock()
	}
	gone := os.Remove(o.path)
	if errors.Is(gone, fs.ErrNotExist) {
		gone = nil
	}
	return errors.Join(err, gone, os.RemoveAll(memoryBeside(o.path)))
}

// ErrOtherKey reports a login that the key of ids does not open.
var ErrOtherKey = errors.New("this key of ids does not open it, so that the issuer cannot be told")

// Logout has the issuer end the login of a principal at a server, and forgets it, also where that fails. revoked says
// whether the issuer has. Without the key that has sealed the login nothing is done: see Forget. key is a SealingKey.
func (o OfPrincipal) Logout(ctx context.Context, key, server string) (revoked bool, err error) {
	own := Own{Page: o.Page, Key: key, Principal: o.Principal}
	store := own.store(filepath.Dir(filepath.Dir(filepath.Dir(o.path))), server)
	if store.dir == "" {
		return false, ErrOtherKey
	}
	info, err := os.Lstat(o.path)
	if err != nil {
		return false, err
	}
	l, err := store.readAny(o.path, info) // the seal says that nobody has changed it
	switch {
	case errors.Is(err, errSealed):
		return false, ErrOtherKey
	case err != nil:
		return false, err
	}
	return Logout(ctx, store, l)
}

// ForgetPrincipals deletes the logins of a gateway's principals that are no more, and ends those that are being made:
// another one may get the name of a principal later. pages begins the pages of the gateway. It returns whose logins it
// has deleted.
func ForgetPrincipals(stateDir, pages string, isThere func(page, principal string) bool) (gone []string, err error) {
	isGone := func(page, principal string) bool {
		return (page == pages || strings.HasPrefix(page, pages+"/")) && !isThere(page, principal)
	}
	visits.giveUp(func(c Credentials) bool {
		return c.StateDir == stateDir && isGone(c.Own.Page, c.Own.Principal)
	})
	all, err := OfPrincipals(stateDir)
	for _, one := range all {
		if !isGone(one.Page, one.Principal) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
		err = errors.Join(err, one.Forget(ctx))
		cancel()
		gone = append(gone, one.Principal)
	}
	return gone, err
}

// write writes the file of a login.
func (s Store) write(l *Login) error {
	var data []byte
	var err error
	if s.of != nil {
		data, err = s.of.seal(l)
	} else {
		data, err = json.MarshalIndent(l, "", "  ")
	}
	if err != nil {
		return err
	}
	return atomicfile.Write(s.path(l.Server, l.Issuer), append(data, '\n'))
}

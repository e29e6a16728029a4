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
// all share one.
type Own struct {
	// Page is the address at which a principal logs in: PUBLIC-URL/login/NAME. Principals of two gateways that have the
	// same name are not the same, and this address tells them apart.
	Page string `json:"page"`
	// Principal is whose login it is. Empty: nobody's, as for a probe.
	Principal string `json:"principal"`
	// Authority says who names that principal, if that is the issuer of the gateway's tokens: the same name is another
	// principal at another issuer. Empty: the gateway itself does.
	Authority string `json:"authority,omitempty"`
}

// Seal says how the logins of principals are kept. It must not be logged.
type Seal struct {
	// Key seals the files: see SealingKey. Empty: nothing is kept, and nobody can log in.
	Key string
	// Gateway tells the gateway from others of this user that keep their logins in the same place, whatever its page
	// was before. Empty: the page alone does. It says whose principals may end, and seals nothing.
	Gateway string
}

// owner is whose logins at a server a Store has.
type owner struct {
	Own
	Seal
	server string // its Name
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

// storeOf returns the store of a principal's logins at a server. It has no place if there is no principal, or no key.
func storeOf(stateDir, server string, own Own, seal Seal) Store {
	if stateDir == "" || seal.Key == "" || own.Principal == "" || own.Page == "" {
		return Store{}
	}
	return Store{dir: principalsDir(stateDir), of: &owner{own, seal, Name(server)}}
}

func principalsDir(stateDir string) string {
	return filepath.Join(NewStore(stateDir).dir, folderOfPrincipals)
}

// envelope is the file of a principal's login. All but Sealed is for people, and for the end of a principal: a login is
// used only if it was sealed for the owner that asks.
type envelope struct {
	Server string `json:"server"` // Name
	Issuer string `json:"issuer"`
	Own
	Gateway string    `json:"gateway,omitempty"`
	At      time.Time `json:"loggedIn"`
	KeyID   string    `json:"keyId"`  // of the key that has sealed it
	Sealed  []byte    `json:"sealed"` // a Login
}

// keyID tells a SealingKey from others; empty: it is none.
func keyID(key string) string {
	if key == "" {
		return ""
	}
	return hash("key of logins\n" + key)
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
	data, _ := json.Marshal([]string{"login 1", o.server, issuer, o.Page, o.Principal, o.Authority}) // never fails
	return data
}

// seal returns the file of a login.
func (o *owner) seal(l *Login) ([]byte, error) {
	data, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(envelope{Server: Name(l.Server), Issuer: l.Issuer, Own: o.Own,
		Gateway: o.Gateway, At: l.At, KeyID: keyID(o.Key),
		Sealed: o.aead().Seal(nil, nil, data, o.boundTo(l.Issuer))}, "", "  ")
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
	Server string // Name of it
	Issuer string
	Own
	Gateway string // that has made it: see Seal
	At      time.Time
	LastUse time.Time // zero: never
	path    string
	keyID   string
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
		one := OfPrincipal{Server: e.Server, Issuer: e.Issuer, Own: e.Own, Gateway: e.Gateway, At: e.At,
			path: path, keyID: e.KeyID, LastUse: lastUse(path, e.At)}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b OfPrincipal) int {
		key := func(o OfPrincipal) string {
			return strings.Join([]string{o.Server, o.Page, o.Principal, o.Authority}, "\n")
		}
		return strings.Compare(key(a), key(b))
	})
	return all, err
}

// Forget deletes the login, also if its lock cannot be had in time. It is no error if there is none.
func (o OfPrincipal) Forget(ctx context.Context) error {
	_, err := o.forget(ctx, "")
	return err
}

// forget is Forget, and returns what the file had; nil if the key does not open it.
func (o OfPrincipal) forget(ctx context.Context, key string) (l *Login, err error) {
	unlock, err := Store{dir: filepath.Dir(o.path)}.lock(ctx, o.path) // a refresh under way would write the file anew
	if err == nil {
		defer unlock()
	}
	_, l, _ = o.read(key)
	gone := os.Remove(o.path)
	if errors.Is(gone, fs.ErrNotExist) {
		gone = nil
	}
	return l, errors.Join(err, gone, os.RemoveAll(memoryBeside(o.path)))
}

// ErrOtherKey reports a login that the key of ids does not open.
var ErrOtherKey = errors.New("this key of ids does not open it, so that the issuer cannot be told")

// read reads the login, whoever can read its file: the seal says that nobody has changed it. key is a SealingKey.
func (o OfPrincipal) read(key string) (store Store, l *Login, err error) {
	store = storeOf(filepath.Dir(filepath.Dir(filepath.Dir(o.path))), o.Server, o.Own, Seal{key, o.Gateway})
	if store.dir == "" {
		return store, nil, ErrOtherKey
	}
	info, err := os.Lstat(o.path)
	if err == nil {
		l, err = store.readAny(o.path, info)
	}
	if errors.Is(err, errSealed) {
		err = ErrOtherKey
	}
	return store, l, err
}

// Logout has the issuer end the login, and forgets it, also where that fails. revoked says whether the issuer has.
// Without the key that has sealed the login nothing is done: see Forget. key is a SealingKey.
func (o OfPrincipal) Logout(ctx context.Context, key string) (revoked bool, err error) {
	store, l, err := o.read(key)
	if err != nil {
		return false, err
	}
	return Logout(ctx, store, l)
}

// Gone is a login that was deleted because its principal is no more.
type Gone struct {
	OfPrincipal
	login *Login // nil: it could not be opened
}

// Revoke has the issuer end the login. It is no error if the issuer has no way to do so.
func (g Gone) Revoke(ctx context.Context) error {
	if g.login == nil {
		return ErrOtherKey
	}
	_, err := g.login.revoke(ctx, newGuard(nil, g.login.ServerAt))
	return err
}

// ForgetPrincipals deletes the logins of principals that are no more, of those that were sealed with a SealingKey, and
// ends those that are being made: another one may get the name of a principal later. isThere gets also those of other
// gateways, and those of which nothing but the principal is known, as nobody has logged in yet. It returns which it has
// deleted; their issuers are not told yet.
func ForgetPrincipals(stateDir, key string, isThere func(OfPrincipal) bool) (gone []Gone, err error) {
	if key == "" {
		return nil, nil
	}
	visits.giveUp(func(c Credentials) bool {
		return c.StateDir == stateDir && c.Seal.Key == key &&
			!isThere(OfPrincipal{Own: c.Own, Gateway: c.Seal.Gateway, At: time.Now()})
	})
	all, err := OfPrincipals(stateDir)
	for _, one := range all {
		if one.keyID != keyID(key) || isThere(one) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
		l, problem := one.forget(ctx, key)
		cancel()
		err = errors.Join(err, problem)
		gone = append(gone, Gone{one, l})
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

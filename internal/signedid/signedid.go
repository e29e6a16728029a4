// Package signedid makes the ids of connections, and recognizes them later, also in
// another process: an id shows by itself that a gateway with the same key has made it, and
// for whom. So no list of ids has to be kept.
//
// An id is replica.random.mac: the process that made it, a random UUID (RFC 9562, version
// 4), and the signature of both and of the principal, as in
//
//	YRS3A6YD.c53324ec-2790-4b78-8695-9e509d590969.yqbHVlDST3UWglWnur-MVg
package signedid

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// MinKey is the least length of a key, in bytes: that of the hash.
const MinKey = sha256.Size

const (
	// maxID bounds an id, so that a check costs the same whatever comes. It leaves 64
	// characters for the name of a replica.
	maxID = 128
	// macBytes of the HMAC are in an id. Half of a hash is the least that RFC 2104
	// recommends; 128 bits cannot be guessed, and each guess takes a request.
	macBytes = 16
	// maxEnded bounds the ids that an Issuer remembers as ended: half a megabyte.
	maxEnded = 4096
)

// encoding is that of the signature in an id.
var encoding = base64.RawURLEncoding

// Issuer makes and checks ids. It is safe for concurrent use.
type Issuer struct {
	key           []byte
	scope, prefix string // prefix is what its ids begin with

	ended *lru.Cache[string, struct{}] // the ids that End has ended last
}

// New returns an Issuer with a key; nil: a random one, so that nobody else recognizes its
// ids. Issuers with the same key and another scope do not recognize them either. Each id
// begins with replica, of at most 64 characters; empty: a random one.
func New(key []byte, scope, replica string) *Issuer {
	if key == nil {
		key = []byte(rand.Text() + rand.Text())
	}
	if replica == "" {
		replica = rand.Text()[:8]
	}
	ended, _ := lru.New[string, struct{}](maxEnded) // fails only for a size below 1
	return &Issuer{key: key, scope: scope, prefix: replica + ".", ended: ended}
}

// New returns a new id for a principal.
func (s *Issuer) New(principal string) string {
	random := uuid.NewString()
	return s.prefix + random + "." + s.sign(strings.TrimSuffix(s.prefix, "."), random, principal)
}

// Made reports whether an id begins with the replica of s.
func (s *Issuer) Made(id string) bool { return strings.HasPrefix(id, s.prefix) }

// Verify reports whether an Issuer with the same key and scope has made the id for the
// principal, and this one has not ended it.
func (s *Issuer) Verify(id, principal string) bool {
	replica, random, mac, ok := split(id)
	if !ok || !hmac.Equal([]byte(mac), []byte(s.sign(replica, random, principal))) {
		return false
	}
	return !s.ended.Contains(id)
}

// End makes Verify refuse an id, until many others have ended.
func (s *Issuer) End(id string) { s.ended.Add(id, struct{}{}) }

// sign returns the signature of the parts of an id. Their lengths are signed too, so that
// no other parts have the same bytes.
func (s *Issuer) sign(replica, random, principal string) string {
	return encoding.EncodeToString(s.mac(s.scope, replica, random, principal)[:macBytes])
}

func (s *Issuer) mac(parts ...string) []byte {
	mac := hmac.New(sha256.New, s.key)
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// Hash returns a hash of two texts that is the same for each Issuer with the same key and
// scope, and tells others nothing of them.
func (s *Issuer) Hash(a, b string) uint64 {
	return binary.BigEndian.Uint64(s.mac(s.scope, a, b))
}

// split returns the parts of a text that may be an id.
func split(id string) (replica, random, mac string, ok bool) {
	last := strings.LastIndexByte(id, '.')
	if last < 0 || len(id) > maxID || len(id)-last-1 != encoding.EncodedLen(macBytes) {
		return "", "", "", false
	}
	dot := strings.LastIndexByte(id[:last], '.')
	if dot < 0 {
		return "", "", "", false
	}
	return id[:dot], id[dot+1 : last], id[last+1:], true
}

// Short returns the first characters of the UUID of an id, or of any other text:
// enough to tell ids apart in a log, not enough to use one.
func Short(id string) string {
	if _, random, _, ok := split(id); ok {
		id = random
	}
	return id[:min(8, len(id))]
}

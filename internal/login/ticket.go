package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxTickets bounds the links of a principal for a server that wait for a visit, and maxVisits the logins that have
	// begun. The oldest gives way.
	maxTickets, maxVisits = 16, 4
	// maxProofs is how often somebody may go from the page of a ticket to the issuer of the gateway's tokens.
	maxProofs = 8
	// maxWrong is how many tokens may be typed for a ticket that are not its principal's.
	maxWrong = 5
	// leastTime is how long a ticket that a client gets is good at least.
	leastTime = Patience / 2
)

// Asker is the client that gets a link.
type Asker struct {
	Name       string // as it calls itself
	Connection string // tells it from others of that name
}

// For returns the credentials of a principal, of which a client asks for a link. They are c itself where all share a
// login.
func (c Credentials) For(principal string, asker Asker) Credentials {
	if c.isOwn() {
		c.Own.Principal, c.Asker = principal, asker
		if !IsOfIssuer(principal) {
			c.Own.Authority = ""
		}
	}
	return c
}

// OfIssuer begins the principals that the issuer of the gateway's tokens names. No other one begins with it.
const OfIssuer = "oauth:"

// IsOfIssuer reports whether a principal is one of those.
func IsOfIssuer(principal string) bool { return strings.HasPrefix(principal, OfIssuer) }

// IsPerPrincipal reports whether each principal has a login of its own.
func (c Credentials) IsPerPrincipal() bool { return c.isOwn() }

func (c Credentials) isOwn() bool { return c.Own != Own{} }

// isFor reports whether c and other are about the login of one principal at one server.
func (c Credentials) isFor(other Credentials) bool {
	return c.Own == other.Own && c.Server == other.Server
}

// adviceForOwn returns what a principal does about what keeps its own login from being used. scopes are those of a
// new login; nil: the server names them. asks says that the text answers the client of the principal, which may have
// the link.
func (c Credentials) adviceForOwn(what string, asks bool, scopes []string) (text, link string) {
	if asks {
		if link, _, err := c.takeTicket(scopes); err == nil {
			return what + ". " + c.linkText(link), link
		}
	}
	text = what + ": each principal of the gateway logs in there by a link that its client gets in the answer to a call"
	return text, ""
}

// ticket is a link that a client has got. It is good for one login of one principal.
type ticket struct {
	word   string // the secret part of the link
	of     Credentials
	scopes []string // to ask for; nil: those that the server names
	made   time.Time

	opened  chan struct{} // has one while somebody opens the page
	attempt *Attempt      // what the page has shown; nil: nothing yet. Guarded by opened
	// otherSite and elsewhere are what the page says of the issuer: it is at another site than the server, and has
	// these addresses of other sites. Guarded by opened.
	otherSite bool
	elsewhere string

	// failure is why the page could not be shown, and failed when. Guarded by opened.
	failure error
	failed  time.Time

	wrong  int // tokens of others that were typed. Guarded by the mutex of the visits, as proofs
	proofs int // people who have gone from the page to the issuer of the gateway's tokens
}

// proof is a person on the way to the issuer of the gateway's tokens: the page has been agreed to, and goes on if the
// token of the person is that of the ticket's principal. The token is used for nothing else, and is not kept.
type proof struct {
	ticket *ticket
	flow   *codeFlow
	made   time.Time
}

// visit is a login that has begun at a page.
type visit struct {
	of      Credentials
	attempt *Attempt
	made    time.Time
	over    chan struct{} // closed when nobody waits for the attempt any more
}

// desk has the tickets, proofs and visits of this process. It is safe for concurrent use.
type desk struct {
	mu      sync.Mutex                   // guards what follows
	tickets map[string]*ticket           // by their words
	proofs  map[[sha256.Size]byte]*proof // by the hash of the word of their cookie
	begun   map[[sha256.Size]byte]*visit // by the same
}

var visits = &desk{tickets: make(map[string]*ticket), proofs: make(map[[sha256.Size]byte]*proof),
	begun: make(map[[sha256.Size]byte]*visit)}

// takeTicket returns the link of the page at which the principal logs in, for the client that asks. A client that asks
// again gets the same one while that is good.
func (c Credentials) takeTicket(scopes []string) (link string, isNew bool, err error) {
	if c.source().store.dir == "" {
		return "", false, errors.New("this client has no principal, or the gateway no place for logins")
	}
	t, isNew := visits.ticketFor(c, scopes, time.Now())
	return c.Own.Page + "?ticket=" + t.word, isNew, nil
}

func (d *desk) ticketFor(c Credentials, scopes []string, now time.Time) (t *ticket, isNew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var own []*ticket
	for word, t := range d.tickets {
		switch left := Patience - now.Sub(t.made); {
		case left <= 0:
			delete(d.tickets, word)
		case t.of.isFor(c) && t.of.Asker == c.Asker && slices.Equal(t.scopes, scopes) && left >= leastTime:
			return t, false
		case t.of.isFor(c):
			own = append(own, t)
		}
	}
	slices.SortFunc(own, func(a, b *ticket) int { return a.made.Compare(b.made) })
	for len(own) >= maxTickets {
		delete(d.tickets, own[0].word)
		own = own[1:]
	}
	t = &ticket{word: rand.Text(), of: c, scopes: scopes, made: now, opened: make(chan struct{}, 1)}
	d.tickets[t.word] = t
	return t, true
}

// ticket returns the ticket of a word for a page; nil if there is none that is good.
func (d *desk) ticket(page, word string, now time.Time) *ticket {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tickets[word]
	if t == nil || t.of.Own.Page != page || now.Sub(t.made) >= Patience {
		return nil
	}
	return t
}

// noteWrong notes a token that is not that of the ticket's principal. A ticket is good for few of them.
func (d *desk) noteWrong(t *ticket) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.wrong++; t.wrong >= maxWrong {
		delete(d.tickets, t.word)
	}
}

// addProof notes a person on the way, and returns the word of the cookie that finds it. It reports false if the ticket
// is there no more: it ends after maxProofs of them, and lives on for the first one until that has come back.
func (d *desk) addProof(t *ticket, flow *codeFlow, now time.Time) (word string, isThere bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.proofs, func(_ [sha256.Size]byte, p *proof) bool { return now.Sub(p.made) >= Patience })
	switch {
	case d.tickets[t.word] != t:
		return "", false
	case t.proofs == maxProofs:
		delete(d.tickets, t.word)
		return "", false
	case t.proofs == 0:
		t.made = now
	}
	t.proofs++
	word = rand.Text()
	d.proofs[sha256.Sum256([]byte(word))] = &proof{t, flow, now}
	return word, true
}

// proof returns the person on the way that has a cookie with this word, and the end of that way: it is good once. It
// returns nil if there is none.
func (d *desk) proof(page, word string, now time.Time) (found *proof, drop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := sha256.Sum256([]byte(word))
	found = d.proofs[key]
	if found == nil || found.ticket.of.Own.Page != page || now.Sub(found.made) >= Patience {
		return nil, nil
	}
	return found, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.proofs, key)
	}
}

// begin uses a ticket, and notes its login, which waits for a browser. It returns the word of the cookie, and reports
// whether the ticket was still there: it is good once.
func (d *desk) begin(t *ticket, a *Attempt) (word string, isThere bool) {
	word = rand.Text()
	v := &visit{of: t.of, attempt: a, made: time.Now(), over: make(chan struct{})}
	gone, isThere := d.addVisit(t, word, v)
	if !isThere {
		return "", false
	}
	go func() { // ends with the login, after Patience at the latest
		defer close(v.over)
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_, _ = a.Wait(ctx)
		a.Close()
	}()
	for _, old := range gone {
		old.attempt.Close()
	}
	return word, true
}

// addVisit puts a login in the place of its ticket, if that is there, and returns the logins that give way to it.
func (d *desk) addVisit(t *ticket, word string, v *visit) (gone []*visit, isThere bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tickets[t.word] != t {
		return nil, false
	}
	delete(d.tickets, t.word)
	var own []*visit
	for key, other := range d.begun {
		switch {
		case v.made.Sub(other.made) >= 2*Patience: // it has ended long ago
			delete(d.begun, key)
		case other.of.isFor(v.of):
			own = append(own, other)
		}
	}
	if len(own) >= maxVisits {
		slices.SortFunc(own, func(a, b *visit) int { return a.made.Compare(b.made) })
		gone = own[:len(own)-maxVisits+1]
		maps.DeleteFunc(d.begun, func(_ [sha256.Size]byte, one *visit) bool { return slices.Contains(gone, one) })
	}
	d.begun[sha256.Sum256([]byte(word))] = v
	return gone, true
}

// drop forgets a login that waits for no browser.
func (d *desk) drop(word string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.begun, sha256.Sum256([]byte(word)))
}

// visit returns the login of a page that has a cookie with this word; nil if there is none.
func (d *desk) visit(page, word string) *visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.begun[sha256.Sum256([]byte(word))]
	if v == nil || v.of.Own.Page != page {
		return nil
	}
	return v
}

// giveUp ends the tickets, and the logins that have begun, of some credentials.
func (d *desk) giveUp(isMeant func(Credentials) bool) {
	var gone []*visit
	d.mu.Lock()
	maps.DeleteFunc(d.tickets, func(_ string, t *ticket) bool { return isMeant(t.of) })
	maps.DeleteFunc(d.proofs, func(_ [sha256.Size]byte, p *proof) bool { return isMeant(p.ticket.of) })
	maps.DeleteFunc(d.begun, func(_ [sha256.Size]byte, v *visit) bool {
		if isMeant(v.of) {
			gone = append(gone, v)
		}
		return isMeant(v.of)
	})
	d.mu.Unlock()
	for _, v := range gone {
		v.attempt.Close()
		<-v.over
	}
}

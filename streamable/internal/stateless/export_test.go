package stateless

// What a client could do with states that it makes up.
type (
	Sealer = sealer
	Claims = claims
)

// NewSealer returns a sealer with a key of its own.
func NewSealer() Sealer { return newSealer() }

// Seal and Open are seal and open.
func (s sealer) Seal(c Claims) string              { return s.seal(c) }
func (s sealer) Open(state string) (Claims, error) { return s.open(state) }

package connstate

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"
)

// maxRated bounds how many origins are remembered. Beyond it, those are forgotten that have
// not connected for longest.
const maxRated = 16384

// rates limits the connect rate of each origin. The caller must hold a lock.
type rates struct {
	limit   rate.Limit
	burst   int
	buckets *simplelru.LRU[origin, *rate.Limiter]
}

// newRates returns the rates, nil for no limit.
func newRates(perSecond float64, burst int) *rates {
	if perSecond <= 0 {
		return nil
	}
	buckets, _ := simplelru.NewLRU[origin, *rate.Limiter](maxRated, nil) // fails only for a size of 0
	return &rates{rate.Limit(perSecond), max(burst, 1), buckets}
}

// useConnect uses one connect of the origin and returns 0, or returns how long to wait for one.
func (r *rates) useConnect(from origin, now time.Time) time.Duration {
	if r == nil {
		return 0
	}
	b := r.bucket(from)
	if b.AllowN(now, 1) {
		return 0
	}
	wait := time.Duration((1 - b.TokensAt(now)) / float64(r.limit) * float64(time.Second))
	return max(wait, time.Millisecond)
}

// charge takes n connects for an origin that has used them elsewhere. It takes at most a burst,
// which bounds how long the origin has to wait.
func (r *rates) charge(from origin, n int, now time.Time) {
	if r == nil || n <= 0 {
		return
	}
	b := r.bucket(from)
	b.ReserveN(now, max(0, min(n, r.burst, r.burst+int(b.TokensAt(now)))))
}

// bucket returns the limiter of an origin; a new one, which allows a burst, if it has none.
func (r *rates) bucket(from origin) *rate.Limiter {
	b, ok := r.buckets.Get(from)
	if !ok {
		b = rate.NewLimiter(r.limit, r.burst)
		r.buckets.Add(from, b)
	}
	return b
}

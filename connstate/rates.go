package connstate

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// maxRated bounds how many networks are remembered. Beyond it, networks with full
// buckets are forgotten, and others if need be.
const maxRated = 16384

// rates limits the connect rate of each network. The caller must hold a lock.
type rates struct {
	limit   rate.Limit
	burst   int
	buckets map[netip.Prefix]*bucket
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

// newRates returns the rates, nil for no limit.
func newRates(perSecond float64, burst int) *rates {
	if perSecond <= 0 {
		return nil
	}
	return &rates{rate.Limit(perSecond), max(burst, 1), make(map[netip.Prefix]*bucket)}
}

// take uses one connect of the network and returns 0, or returns how long to wait
// for one. Loopback addresses never wait.
func (r *rates) take(key netip.Prefix, addr netip.Addr, now time.Time) time.Duration {
	if r == nil || addr.Unmap().IsLoopback() {
		return 0
	}
	b := r.buckets[key]
	if b == nil {
		r.evict(now)
		b = &bucket{Limiter: rate.NewLimiter(r.limit, r.burst)}
		r.buckets[key] = b
	}
	b.used = now
	if b.AllowN(now, 1) {
		return 0
	}
	wait := time.Duration((1 - b.TokensAt(now)) / float64(r.limit) * float64(time.Second))
	return max(wait, time.Millisecond)
}

// evict forgets networks whose buckets are full again if there are too many, and
// some of the rest if that is not enough.
func (r *rates) evict(now time.Time) {
	if len(r.buckets) < maxRated {
		return
	}
	refill := time.Duration(float64(r.burst) / float64(r.limit) * float64(time.Second))
	for key, b := range r.buckets {
		if now.Sub(b.used) >= refill {
			delete(r.buckets, key)
		}
	}
	for key := range r.buckets {
		if len(r.buckets) <= maxRated/2 {
			return
		}
		delete(r.buckets, key)
	}
}

package connstate

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// maxRated bounds how many networks are remembered. Beyond it, all are forgotten: who has
// so many networks is not slowed down by a limit for each.
const maxRated = 16384

// rates limits the connect rate of each network. The caller must hold a lock.
type rates struct {
	limit   rate.Limit
	burst   int
	buckets map[netip.Prefix]*rate.Limiter
}

// newRates returns the rates, nil for no limit.
func newRates(perSecond float64, burst int) *rates {
	if perSecond <= 0 {
		return nil
	}
	return &rates{rate.Limit(perSecond), max(burst, 1), make(map[netip.Prefix]*rate.Limiter)}
}

// take uses one connect of the network and returns 0, or returns how long to wait
// for one. Loopback addresses never wait.
func (r *rates) take(key netip.Prefix, addr netip.Addr, now time.Time) time.Duration {
	if r == nil || addr.Unmap().IsLoopback() {
		return 0
	}
	b := r.buckets[key]
	if b == nil {
		if len(r.buckets) >= maxRated {
			clear(r.buckets)
		}
		b = rate.NewLimiter(r.limit, r.burst)
		r.buckets[key] = b
	}
	if b.AllowN(now, 1) {
		return 0
	}
	wait := time.Duration((1 - b.TokensAt(now)) / float64(r.limit) * float64(time.Second))
	return max(wait, time.Millisecond)
}

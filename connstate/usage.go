package connstate

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Usage is what counts against the limits of a cluster.
type Usage struct {
	Connections int
	// Origins are those that use much of a limit for each of them. In a sum, one may be there
	// several times.
	Origins []OriginUsage `json:",omitempty"`
}

// Add returns the sum of u and more.
func (u Usage) Add(more Usage) Usage {
	return Usage{Connections: u.Connections + more.Connections, Origins: append(u.Origins, more.Origins...)}
}

// OriginUsage is what one origin uses: a principal at a network.
type OriginUsage struct {
	Origin uint64 `json:"o"`           // a hash
	Open   int    `json:"n,omitempty"` // connections
	Opened int    `json:"r,omitempty"` // connections since the last Usage
}

const (
	// notable is the part of a limit from which the use of an origin is told to others.
	notable = 16
	// maxNotable bounds the origins of a Usage.
	maxNotable = 512
)

// Usage returns what counts against the limits of a cluster. It reports the 512 origins that
// use most, of those that use at least a sixteenth of Limits.MaxPerIP or, since the last call,
// of Limits.Rate. The Registry must have Options.Clustered.
func (r *Registry) Usage() Usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	use := make(map[uint64]OriginUsage)
	for _, counts := range []map[origin]int{r.opened, r.perIP} {
		for from := range counts {
			open, opened := r.perIP[from], r.opened[from]
			isFast := opened > 0 && opened*notable >= int(r.limits.Rate)
			if isFast || r.limits.MaxPerIP > 0 && open*notable >= r.limits.MaxPerIP {
				use[from.hash] = OriginUsage{from.hash, open, opened}
			}
		}
	}
	clear(r.opened)
	u := Usage{Connections: r.Len(), Origins: slices.Collect(maps.Values(use))}
	slices.SortFunc(u.Origins, func(a, b OriginUsage) int { return cmp.Compare(b.Open+b.Opened, a.Open+a.Opened) })
	u.Origins = u.Origins[:min(len(u.Origins), maxNotable)]
	return u
}

// UsedElsewhere notes what the other replicas of a cluster use in all. Until the next call,
// their open connections count against the limits; those that they have opened count against
// the rates.
func (r *Registry) UsedElsewhere(u Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.elsewhere, r.openElsewhere = int64(u.Connections), make(map[uint64]int, len(u.Origins))
	for _, o := range u.Origins {
		r.openElsewhere[o.Origin] += o.Open
		r.rates.charge(origin{hash: o.Origin}, o.Opened, time.Now())
	}
}

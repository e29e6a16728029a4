package connstate

// MaxUnwritten and MaxRated are bounds that only tests name.
const (
	MaxUnwritten = maxUnwritten
	MaxRated     = maxRated
)

// Networks returns the number of networks whose connect rate is remembered.
func (r *Registry) Networks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rates.buckets.Len()
}

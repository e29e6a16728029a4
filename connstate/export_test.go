package connstate

// MaxWaiting and MaxRated are bounds that only tests name.
const (
	MaxWaiting = maxWaiting
	MaxRated   = maxRated
)

// Networks returns the number of networks whose connect rate is remembered.
func (r *Registry) Networks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.rates.buckets)
}

// PerIP returns the number of networks whose connections are counted.
func (r *Registry) PerIP() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.perIP)
}

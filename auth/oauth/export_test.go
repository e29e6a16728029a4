package oauth

// Valid returns how many tokens s remembers as valid.
func Valid(s *Resource) int { return s.issuer.valid.Len() }

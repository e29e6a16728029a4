package front

// RefusedConnection is the refusal for which the registry had that reason.
func (f *Front) RefusedConnection(err error) *Refusal { return f.refusedConnection(err) }

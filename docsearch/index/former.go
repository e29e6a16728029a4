package index

import "sync"

// formers has the Embedders of the models before. Folders share them: a model may take hundreds of
// megabytes. One that no folder uses any more is forgotten.
type formers struct {
	open func(model string) Embedder // nil: none is known

	mu   sync.Mutex // guards the rest; held while a model is opened
	used map[string]*former
}

type former struct {
	by      Embedder
	folders int // that use it
}

// take returns the Embedder of a model, nil if it is not known. give must be called when the folder
// needs it no more.
func (f *formers) take(model string) Embedder {
	if f.open == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.used[model]
	if one == nil {
		by := f.open(model)
		if by == nil {
			return nil
		}
		one = &former{by: by}
		f.used[model] = one
	}
	one.folders++
	return one.by
}

// give tells that a folder does not use a model any more.
func (f *formers) give(model string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.used[model]
	one.folders--
	if one.folders == 0 {
		delete(f.used, model)
	}
}

// Package index stores documents and searches them by their words and, with an Embedder,
// by their meaning.
//
//	Document ─ cut ─▶ passages ─┬─ words ──▶ a bleve index ──┐
//	                            └─ embed ──▶ a vectors file ─┴─ relevance ─▶ results
//
// Each folder has a directory of its own: removing it removes the folder, and damage costs
// no other. All files can be made anew.
package index

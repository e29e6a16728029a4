// Package index stores documents in one SQLite file and searches them by their words
// and, with an Embedder, by their meaning.
//
//	Document ─ cut ─▶ pieces of chunks ─ weigh ─▶ words (FTS5) ─┐
//	                        │                                   ├─ fuse ─▶ results
//	                        └─ embed ─▶ vectors (vec0) ─────────┘
//
// A chunk, of some 1,000 bytes, is what a search finds. Some ten chunks make a piece,
// the unit of storage and of the full-text table; text is stored once, in its piece.
//
// A search by words has two steps. The full-text table gives the pieces that have a
// word, in classes of the impact that BM25 computes when they are indexed. Then the
// texts of the best documents are read, twenty at a time, to verify phrases, to find
// the best chunk, and to rank words that stand together higher.
//
// One connection writes; searches read the state of the last transaction meanwhile and
// wait for nothing (WAL).
package index

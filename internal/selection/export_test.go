package selection

// MaxSteps is the bound of one rule and one name.
const MaxSteps = maxSteps

// Steps returns how many comparisons it takes to say whether globs match a name, and whether that can be said.
func Steps(list []string, name string) (steps int, decided bool) {
	g, err := compileGlobs(Tools, list)
	if err != nil {
		panic(err)
	}
	left := maxSteps
	o, _ := g.matchWithin(name, &left)
	return maxSteps - left, o != undecided
}

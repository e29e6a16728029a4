package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// meaning is what 0 means for a number.
type meaning struct {
	words string // "" if 0 is refused
	// negative is true if the field keeps 0 as a negative number, because its own
	// zero value is the default.
	negative bool
}

var refused meaning

func zero(words string) meaning { return meaning{words: words} }
func off(words string) meaning  { return meaning{words, true} }

// number describes the numbers that an option takes.
type number[T int | int64 | float64 | time.Duration] struct {
	unit        string
	least, most T
	parse       func(string) (T, error)
	format      func(T) string
	want        string // what is allowed, but for 0
}

// at returns the value that is kept at p.
func (n number[T]) at(p *T, zero meaning) value {
	want := n.want
	if zero.words != "" {
		want += ", or 0 for " + zero.words
	}
	show := func() string { return n.format(max(*p, 0)) }
	v := one(p, n.unit, func(given string) string {
		number, err := n.parse(given)
		switch {
		case err == nil && number == 0 && zero.words != "":
			if *p = 0; zero.negative {
				*p = -1
			}
		case err != nil || !(number >= n.least && number <= n.most): // NaN is in no range
			return want
		default:
			*p = number
		}
		return ""
	}, show)
	v.short, v.zero = show, "0 is refused."
	if zero.words != "" {
		v.zero = "0 means " + zero.words + "."
	}
	return v
}

// maxDuration, a year, keeps sums of durations far from overflow.
const maxDuration = 365 * 24 * time.Hour

// duration is a time with a unit. It is at least 1 ms, or least if given.
func duration(p *time.Duration, zero meaning, least ...time.Duration) value {
	min := append(least, time.Millisecond)[0]
	return number[time.Duration]{"DURATION", min, maxDuration, time.ParseDuration, formatDuration,
		fmt.Sprintf("want a number with a unit (ms, s, m, h) of at least %v, such as 15s, and at most %s", min, formatDuration(maxDuration))}.at(p, zero)
}

// formatDuration writes 1m and 1h where the standard library has 1m0s and 1h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "0s" {
		return "0"
	}
	return s
}

// maxCount keeps sums and products of counts far from overflow.
const maxCount = 100_000_000

// count is a whole number.
func count(p *int, zero meaning) value {
	parse := func(given string) (int, error) { return strconv.Atoi(strings.ReplaceAll(given, "_", "")) }
	return number[int]{"N", 1, maxCount, parse, strconv.Itoa,
		fmt.Sprintf("want a whole number from 1 to %d", maxCount)}.at(p, zero)
}

// rate is a number a second.
func rate(p *float64, zero meaning) value {
	parse := func(given string) (float64, error) { return strconv.ParseFloat(given, 64) }
	format := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return number[float64]{"PER-SECOND", math.SmallestNonzeroFloat64, maxCount, parse, format,
		fmt.Sprintf("want a number a second above 0, up to %d", maxCount)}.at(p, zero)
}

// size is a number of bytes.
func size[T int | int64](p *T) value {
	return number[T]{"BYTES", 1 << 10, 1 << 30, parseSize[T], formatSize[T],
		"want bytes from 1KiB to 1GiB, such as 4MiB, 512KiB or 1048576"}.at(p, refused)
}

// maxSize keeps sums of sizes far from overflow.
const maxSize = 1 << 40

// total is a number of bytes of all clients together.
func total(p *int64, zero meaning) value {
	return number[int64]{"BYTES", 1 << 20, maxSize, parseSize[int64], formatSize[int64],
		"want bytes from 1MiB to 1024GiB, such as 512MiB or 4GiB"}.at(p, zero)
}

// sizeUnits are the units of a size, the largest first. Units of 1000 are refused,
// since nobody agrees on what MB means.
var sizeUnits = []struct {
	name  string
	shift int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"", 0}}

func parseSize[T int | int64](given string) (T, error) {
	for _, unit := range sizeUnits {
		if digits, ok := strings.CutSuffix(given, unit.name); ok {
			value, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			size := T(value << unit.shift)
			if value > maxSize>>unit.shift || int64(size) != value<<unit.shift { // T may have 32 bits
				err = strconv.ErrRange
			}
			return size, err
		}
	}
	return 0, nil // not reached: the last unit is empty
}

func formatSize[T int | int64](value T) string {
	for _, unit := range sizeUnits {
		if value >= 1<<unit.shift && value%(1<<unit.shift) == 0 {
			return strconv.FormatInt(int64(value>>unit.shift), 10) + unit.name
		}
	}
	return "0"
}

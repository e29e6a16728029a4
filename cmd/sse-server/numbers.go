package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// The tag zero of a numeric option says what 0 means in words ("never",
// "unlimited"); without it 0 is refused. The tag off says that the gateway
// wants a negative number for it, because its own zero value is the default.

// zeroHint completes what a fault says is allowed.
func zeroHint(tag *kong.Tag) string {
	if !tag.Has("zero") {
		return ""
	}
	return ", or 0 for " + tag.Get("zero")
}

// duration is an option of time with a unit.
type duration struct {
	raw
	value time.Duration
}

// Decode implements [kong.MapperValue].
func (d *duration) Decode(ctx *kong.DecodeContext) error {
	given, ok := d.scalar(ctx)
	if !ok {
		return nil
	}
	*d = duration{raw: raw{given: given}}
	tag := ctx.Value.Tag
	least := time.Millisecond
	if tag.Has("min") {
		least, _ = time.ParseDuration(tag.Get("min"))
	}
	value, err := time.ParseDuration(given)
	switch {
	case err == nil && value == 0 && tag.Has("zero"):
		if tag.Has("off") {
			value = -1
		}
		d.value = value
	case err != nil || value < least:
		d.want = fmt.Sprintf("want a number with a unit (ms, s, m, h) of at least %v, such as %s%s",
			least, example(tag, "15s"), zeroHint(tag))
	default:
		d.value = value
	}
	return nil
}

// example is the default of an option, where it has one that is not 0.
func example(tag *kong.Tag, otherwise string) string {
	if tag.Default == "" || tag.Default == "0" {
		return otherwise
	}
	return tag.Default
}

// String implements [setting].
func (d *duration) String() string {
	if d.value < 0 {
		return "0"
	}
	// 1m0s and 1h0m0s are how the standard library writes 1m and 1h.
	s := d.value.String()
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

// count is an option that is a whole number.
type count struct {
	raw
	value int
}

// maxCount keeps sums and products of counts far from overflow.
const maxCount = 100_000_000

// Decode implements [kong.MapperValue].
func (c *count) Decode(ctx *kong.DecodeContext) error {
	given, ok := c.scalar(ctx)
	if !ok {
		return nil
	}
	*c = count{raw: raw{given: given}}
	tag := ctx.Value.Tag
	value, err := strconv.Atoi(strings.ReplaceAll(given, "_", ""))
	switch {
	case err == nil && value == 0 && tag.Has("zero"):
		if tag.Has("off") {
			value = -1
		}
		c.value = value
	case err != nil || value < 1 || value > maxCount:
		c.want = fmt.Sprintf("want a whole number from 1 to %d%s", maxCount, zeroHint(tag))
	default:
		c.value = value
	}
	return nil
}

// String implements [setting].
func (c *count) String() string { return strconv.Itoa(max(c.value, 0)) }

// rate is an option that is a number a second.
type rate struct {
	raw
	value float64
}

// Decode implements [kong.MapperValue].
func (r *rate) Decode(ctx *kong.DecodeContext) error {
	given, ok := r.scalar(ctx)
	if !ok {
		return nil
	}
	*r = rate{raw: raw{given: given}}
	tag := ctx.Value.Tag
	value, err := strconv.ParseFloat(given, 64)
	switch {
	case err == nil && value == 0 && tag.Has("zero"):
		if tag.Has("off") {
			value = -1
		}
		r.value = value
	case err != nil || math.IsNaN(value) || value <= 0 || value > maxCount:
		r.want = fmt.Sprintf("want a number a second above 0, up to %d%s", maxCount, zeroHint(tag))
	default:
		r.value = value
	}
	return nil
}

// String implements [setting].
func (r *rate) String() string { return strconv.FormatFloat(max(r.value, 0), 'f', -1, 64) }

// size is an option in bytes.
type size struct {
	raw
	value int64
}

const (
	minSize = 1 << 10
	maxSize = 1 << 30
)

// Decode implements [kong.MapperValue].
func (s *size) Decode(ctx *kong.DecodeContext) error {
	given, ok := s.scalar(ctx)
	if !ok {
		return nil
	}
	*s = size{raw: raw{given: given}}
	value, err := parseSize(given)
	if err != nil || value < minSize || value > maxSize {
		s.want = "want bytes from 1KiB to 1GiB, such as 4MiB, 512KiB or 1048576"
		return nil
	}
	s.value = value
	return nil
}

// sizeUnits are the units that a size may carry, the largest first.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
}

// parseSize reads a whole number of bytes, KiB, MiB or GiB. Units of 1000 are
// refused, since nobody agrees on what MB means.
func parseSize(given string) (int64, error) {
	factor := int64(1)
	number := given
	for _, unit := range sizeUnits() {
		if rest, ok := strings.CutSuffix(given, unit.name); ok {
			factor, number = unit.bytes, strings.TrimSpace(rest)
			break
		}
	}
	value, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse size: %w", err)
	}
	if value < 0 || value > math.MaxInt64/factor {
		return 0, fmt.Errorf("parse size: %q is out of range", given)
	}
	return value * factor, nil
}

// String implements [setting].
func (s *size) String() string {
	for _, unit := range sizeUnits() {
		if s.value >= unit.bytes && s.value%unit.bytes == 0 {
			return strconv.FormatInt(s.value/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(s.value, 10)
}
